"""Fourier transform by the matrix of roots of unity."""

from __future__ import annotations

import numpy as np

SMALL = {"rows": 3, "size": 16}


def formula(x: np.ndarray, inverse: int) -> tuple[np.ndarray, ...]:
    """A product with the matrix."""
    size = x.shape[1]
    sign = 1 if inverse else -1
    turns = np.outer(np.arange(size), np.arange(size)) % size / size
    out = (x[..., 0] + 1j * x[..., 1]) @ np.exp(sign * 2j * np.pi * turns)
    if inverse:
        out = out / size
    return (np.stack([out.real, out.imag], axis=-1),)
