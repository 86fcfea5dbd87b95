"""Hard swish by its three pieces."""

import numpy as np

SMALL = {"batch": 2, "channels": 5, "pixels": 7}


def formula(x: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, ...]:
    """0 below -3, the identity above 3, a parabola between."""
    y = x + bias.reshape(1, -1, 1)
    return (np.where(y <= -3, 0.0, np.where(y >= 3, y, (y * y + 3 * y) / 6)),)
