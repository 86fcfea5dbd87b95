"""Variance and mean by numpy."""

import math

import numpy as np

SMALL = {"rows": 5, "cols": 33}


def formula(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """Variance with one degree of freedom less."""
    return x.var(axis=1, ddof=1), np.array([math.fsum(row) / row.size for row in x])
