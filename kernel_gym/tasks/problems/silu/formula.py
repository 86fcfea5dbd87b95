"""SiLU by hyperbolic functions."""

import numpy as np

SMALL = {"rows": 4, "cols": 31}


def formula(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """`x (1 + tanh(x / 2)) / 2`."""
    return (np.where(x < -30, x * np.exp(np.minimum(x, 0)), x * (1 + np.tanh(x / 2)) / 2),)
