"""GEGLU one element at a time, with the error function of the C library."""

import math

import numpy as np

SMALL = {"rows": 3, "cols": 13}


def formula(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """Value times gate times the normal distribution function of the gate."""
    half = x.shape[1] // 2
    out = np.empty((x.shape[0], half))
    for i, j in np.ndindex(out.shape):
        gate = x[i, half + j]
        out[i, j] = x[i, j] * gate * math.erfc(-gate * math.sqrt(0.5)) / 2
    return (out,)
