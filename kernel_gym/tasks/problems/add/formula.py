"""Sum row by row."""

import numpy as np

SMALL = {"rows": 4, "cols": 31}


def formula(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    """Both stacked and summed over the new axis."""
    return (np.stack([x, y]).sum(axis=0),)
