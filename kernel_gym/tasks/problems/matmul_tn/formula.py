"""The product as a sum over tokens."""

import numpy as np

SMALL = {"m": 7, "n": 5, "tokens": 33}


def formula(grad: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, ...]:
    """One outer product a token."""
    return (np.sum([np.outer(g, row) for g, row in zip(grad, x, strict=True)], axis=0),)
