"""Norm and rotation with complex numbers."""

from __future__ import annotations

import numpy as np

SMALL = {"tokens": 3, "q_heads": 4, "k_heads": 2, "head_dim": 16}


def formula(
    q: np.ndarray,
    k: np.ndarray,
    q_weight: np.ndarray,
    k_weight: np.ndarray,
    cos: np.ndarray,
    sin: np.ndarray,
    eps: float,
) -> tuple[np.ndarray, ...]:
    """A pair is a complex number, its rotation a product."""
    outs = []
    for x, weight in ((q, q_weight), (k, k_weight)):
        y = x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight
        turned = (y[..., :8] + 1j * y[..., 8:]) * (cos + 1j * sin)[:, None, :]
        outs.append(np.concatenate([turned.real, turned.imag], axis=-1))
    return tuple(outs)
