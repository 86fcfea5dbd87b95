"""Product with a transposed operand as an index sum."""

from __future__ import annotations

import numpy as np

SMALL = {"m": 7, "n": 5, "k": 11}
FLOPS = 7 * 5 * 11 * 2


def formula(x: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, ...]:
    """Sums over the shared last index."""
    return (np.einsum("ik,jk->ij", x, weight),)
