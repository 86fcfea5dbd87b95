"""Interpolation point by point."""

from __future__ import annotations

import numpy as np

SMALL = {"batch": 2, "channels": 3, "known": 5, "count": 7}
BYTES = 2 * (24 * 7 + 2 * 3 + 2 * 3 * 7)


def formula(x: np.ndarray, index: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, ...]:
    """A product of three features and three weights."""
    out = np.empty((2, 3, 7))
    for b, i in np.ndindex(2, 7):
        out[b, :, i] = x[b][:, index[b, i]] @ weight[b, i]
    return (out,)
