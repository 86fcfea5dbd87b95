"""Gradients of layer norm from the Jacobian of each row."""

from __future__ import annotations

import numpy as np

SMALL = {"rows": 4, "cols": 19}


def formula(
    grad: np.ndarray, x: np.ndarray, mean: np.ndarray, rstd: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Multiplies by the matrix of partial derivatives, row by row."""
    cols = x.shape[1]
    dx, dweight = np.empty_like(x), np.zeros(cols)
    for i, row in enumerate(x):
        n = (row - mean[i]) * rstd[i]
        jacobian = rstd[i] * (np.eye(cols) - 1 / cols - np.outer(n, n) / cols)
        dx[i] = jacobian @ (grad[i] * weight)
        dweight += grad[i] * n
    return dx, dweight, np.ones(len(x)) @ grad
