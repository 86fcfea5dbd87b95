"""Grouped product token by token."""

from __future__ import annotations

import numpy as np

SMALL = {"tokens": 13, "experts": 4, "n": 8, "k": 16}
BYTES = 2 * (13 * 16 + 3 * 16 * 8 + 13 * 8) + 4 * 4
FLOPS = 2 * 13 * 16 * 8


def formula(x: np.ndarray, weight: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, ...]:
    """Looks each token's expert up: the first whose end lies past it."""
    rows = [x[t] @ weight[np.searchsorted(ends, t, side="right")] for t in range(len(x))]
    return (np.stack(rows),)
