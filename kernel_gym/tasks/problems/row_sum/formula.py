"""Row sums without rounding."""

import math

import numpy as np

SMALL = {"rows": 5, "cols": 33}


def formula(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """One exact sum a row."""
    return (np.array([math.fsum(row) for row in x]),)
