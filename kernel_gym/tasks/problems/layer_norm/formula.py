"""Layer norm by mean and variance."""

from __future__ import annotations

import numpy as np

SMALL = {"rows": 5, "cols": 33}


def formula(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, eps: float
) -> tuple[np.ndarray, ...]:
    """With numpy's own mean and biased variance."""
    centred = x - x.mean(1, keepdims=True)
    return (centred / np.sqrt(x.var(1, keepdims=True) + eps) * weight + bias,)
