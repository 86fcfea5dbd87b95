"""RMS normalisation by vector norms."""

import math

import numpy as np

SMALL = {"rows": 5, "cols": 33}


def formula(x: np.ndarray, weight: np.ndarray, eps: float) -> tuple[np.ndarray, ...]:
    """Each row over the length of a vector that holds it and the share of eps."""
    rows = [row / math.hypot(*row, math.sqrt(eps * row.size)) * math.sqrt(row.size) for row in x]
    return (np.array(rows) * weight,)
