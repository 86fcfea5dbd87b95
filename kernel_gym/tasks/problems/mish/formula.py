"""Mish one element at a time, by a quotient of exponentials."""

import math

import numpy as np

SMALL = {"rows": 4, "cols": 31}


def _mish(x: float) -> float:
    e = math.exp(-abs(x))
    if x > 0:
        return x * (1 + 2 * e) / (1 + 2 * e + 2 * e * e)
    return x * (e * e + 2 * e) / (e * e + 2 * e + 2)


def formula(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """`x (e^2 + 2 e) / (e^2 + 2 e + 2)` with `e = exp(x)`."""
    return (np.vectorize(_mish)(x),)
