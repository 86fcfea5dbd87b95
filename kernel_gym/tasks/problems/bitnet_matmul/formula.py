"""The product as a difference of two sums, of columns with weight 1 and with weight -1."""

from __future__ import annotations

import numpy as np

SMALL = {"m": 3, "n": 5, "k": 16}


def formula(
    x: np.ndarray, x_scale: np.ndarray, code: np.ndarray, w_scale: float
) -> tuple[np.ndarray, ...]:
    """Takes every code apart by itself."""
    out = np.zeros((3, 5))
    for i, j in np.ndindex(3, 5):
        for k in range(16):
            bits = int(code[j, k // 4]) >> 2 * (k % 4) & 3
            out[i, j] += {0: -1, 1: 0, 2: 1}[bits] * float(x[i, k])
        out[i, j] *= x_scale[i] * w_scale
    return (out,)
