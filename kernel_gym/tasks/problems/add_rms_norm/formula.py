"""Residual addition and RMS norm by their definition."""

from __future__ import annotations

import numpy as np

SMALL = {"rows": 5, "cols": 33}


def formula(
    x: np.ndarray, residual: np.ndarray, weight: np.ndarray, eps: float
) -> tuple[np.ndarray, ...]:
    """Divides each row of the sum by its root mean square."""
    h = x + residual
    return h / np.sqrt((h * h).sum(1, keepdims=True) / h.shape[1] + eps) * weight, h
