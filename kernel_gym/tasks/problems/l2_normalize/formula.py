"""L2 normalisation by hypot, eps as one coordinate more."""

import math

import numpy as np

SMALL = {"rows": 5, "cols": 33}


def formula(x: np.ndarray, eps: float) -> tuple[np.ndarray, ...]:
    """Each row over its length."""
    return (np.array([row / math.hypot(*row, math.sqrt(eps)) for row in x]),)
