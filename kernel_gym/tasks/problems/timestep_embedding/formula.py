"""Timestep embedding by complex exponentials."""

import math

import numpy as np

SMALL = {"rows": 5, "half": 6}


def formula(t: np.ndarray, dim: int, max_period: float) -> tuple[np.ndarray, ...]:
    """Real and imaginary parts of unit vectors at angles `t / max_period^(j / half)`."""
    half = dim // 2
    periods = np.array([math.exp(math.log(max_period) * j / half) for j in range(half)])
    turn = np.exp(1j * np.divide.outer(t, periods))
    return (np.hstack([turn.real, turn.imag]),)
