"""Bias, GELU and residual with the error function of the standard library."""

from __future__ import annotations

import math

import numpy as np

SMALL = {"rows": 4, "cols": 9}


def formula(x: np.ndarray, bias: np.ndarray, residual: np.ndarray) -> tuple[np.ndarray, ...]:
    """GELU is x times the normal distribution's mass below x."""
    h = x + bias
    below = np.vectorize(lambda v: math.erfc(-v / math.sqrt(2)) / 2)(h)
    return (residual + h * below,)
