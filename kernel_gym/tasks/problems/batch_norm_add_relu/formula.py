"""Batch norm as one affine map a channel."""

import numpy as np

SMALL = {"batch": 2, "channels": 4, "pixels": 6}


def formula(
    x: np.ndarray,
    residual: np.ndarray,
    mean: np.ndarray,
    variance: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray,
    eps: float,
) -> tuple[np.ndarray, ...]:
    """Folds statistics and weights into a slope and an intercept."""
    slope = weight * (variance + eps) ** -0.5
    intercept = bias - slope * mean
    y = np.einsum("bcp,c->bcp", x, slope) + intercept[None, :, None] + residual
    return (np.maximum(y, 0),)
