"""Rotary embedding as a product of complex numbers."""

from __future__ import annotations

import numpy as np

SMALL = {"tokens": 3, "heads": 2, "head_dim": 16}


def formula(x: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> tuple[np.ndarray, ...]:
    """Each pair is a complex number that is turned by the angle of its token."""
    half = x.shape[-1] // 2
    pair = x[..., :half] + 1j * x[..., half:]
    turned = pair * (cos + 1j * sin)[:, None, :]
    return (np.concatenate([turned.real, turned.imag], axis=-1),)
