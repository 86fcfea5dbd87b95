"""Rotation with complex numbers."""

from __future__ import annotations

import numpy as np

SMALL = {"tokens": 3, "heads": 2, "head_dim": 16}


def formula(
    x: np.ndarray, position: np.ndarray, frequency: np.ndarray, attention: float
) -> tuple[np.ndarray, ...]:
    """A pair of neighbours is a complex number."""
    turn = attention * np.exp(1j * np.outer(position, frequency))
    turned = (x[..., 0::2] + 1j * x[..., 1::2]) * turn[:, None, :]
    out = np.empty_like(x)
    out[..., 0::2], out[..., 1::2] = turned.real, turned.imag
    return (out,)
