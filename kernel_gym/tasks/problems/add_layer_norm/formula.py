"""Layer norm of a sum by the mean of squares."""

import numpy as np

SMALL = {"rows": 5, "cols": 33}


def formula(
    x: np.ndarray, residual: np.ndarray, weight: np.ndarray, bias: np.ndarray, eps: float
) -> tuple[np.ndarray, ...]:
    """Row by row, with numpy's biased variance."""
    total = x + residual
    rows = [(row - row.mean()) / np.sqrt(row.var() + eps) * weight + bias for row in total]
    return np.stack(rows), total
