"""Instance normalisation by numpy's mean and variance."""

import numpy as np

SMALL = {"batch": 2, "channels": 3, "pixels": 11}


def formula(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, eps: float
) -> tuple[np.ndarray, ...]:
    """Pixels last, channels broadcast."""
    mean, variance = x.mean(-1)[..., None], x.var(-1)[..., None]
    return ((x - mean) / np.sqrt(variance + eps) * weight[:, None] + bias[:, None],)
