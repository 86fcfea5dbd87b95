"""Derivative of GELU by the functions of scipy."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

SMALL = {"rows": 3, "cols": 7}


def formula(grad: np.ndarray, x: np.ndarray, tanh: int) -> tuple[np.ndarray, ...]:
    """The logistic function stands for the hyperbolic tangent: (1 + tanh u) / 2 = expit(2 u)."""
    if not tanh:
        return (grad * (ndtr(x) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)),)
    root = np.sqrt(8 / np.pi)
    u = root * x * (1 + 0.044715 * x * x)
    low = np.exp(-np.abs(u)) / (1 + np.exp(-np.abs(u)))
    half = np.where(u >= 0, 1 - low, low)
    return (grad * (half + x * low * (1 - low) * root * (1 + 0.134145 * x * x)),)
