"""Adaptive layer norm by its definition."""

from __future__ import annotations

import numpy as np

SMALL = {"batch": 2, "tokens": 3, "channels": 17}


def formula(
    x: np.ndarray, shift: np.ndarray, scale: np.ndarray, eps: float
) -> tuple[np.ndarray, ...]:
    """Token by token."""
    out = np.empty_like(x)
    for b, t in np.ndindex(x.shape[:2]):
        row = x[b, t]
        out[b, t] = (row - row.mean()) / np.sqrt(row.var() + eps) * (1 + scale[b]) + shift[b]
    return (out,)
