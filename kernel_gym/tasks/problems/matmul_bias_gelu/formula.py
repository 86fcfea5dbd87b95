"""Product, bias and tanh GELU by their definitions."""

from __future__ import annotations

import numpy as np

SMALL = {"m": 6, "n": 9, "k": 13}


def formula(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, ...]:
    """Of each output by itself."""
    h = np.einsum("ik,kj->ij", x, weight) + bias
    return (h / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3))),)
