"""Image normalisation channel by channel."""

import numpy as np

SMALL = {"batch": 2, "pixels": 7, "channels": 3}


def formula(x: np.ndarray, mean: np.ndarray, std: np.ndarray) -> tuple[np.ndarray, ...]:
    """A stack of affine maps."""
    planes = [(x[..., c] - 255 * mean[c]) / (255 * std[c]) for c in range(len(mean))]
    return (np.stack(planes, axis=1),)
