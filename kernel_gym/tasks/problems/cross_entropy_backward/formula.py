"""Gradient of cross entropy row by row."""

from __future__ import annotations

import numpy as np

SMALL = {"rows": 9, "vocab": 6}


def formula(
    logits: np.ndarray, target: np.ndarray, grad: np.ndarray, smoothing: float, ignore_index: int
) -> tuple[np.ndarray, ...]:
    """Subtracts the smoothed goal from the probabilities of each row that counts."""
    out = np.zeros_like(logits)
    for i, row in enumerate(logits):
        if target[i] == ignore_index:
            continue
        weights = np.exp(row - row.max())
        goal = np.full(len(row), smoothing / len(row))
        goal[target[i]] += 1 - smoothing
        out[i] = grad[i] * (weights / weights.sum() - goal)
    return (out,)
