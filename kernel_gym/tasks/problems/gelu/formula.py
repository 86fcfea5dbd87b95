"""GELU by its tanh form; the oracle goes by the sigmoid."""

from __future__ import annotations

import math

import numpy as np

SMALL = {"rows": 4, "cols": 31}


def formula(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """The form of Hendrycks and Gimpel, arXiv:1606.08415."""
    return (0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))),)
