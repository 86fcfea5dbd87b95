"""The product weight by weight."""

from __future__ import annotations

import numpy as np

SMALL = {"m": 3, "n": 4, "k": 16}


def formula(x: np.ndarray, value: np.ndarray, place: np.ndarray) -> tuple[np.ndarray, ...]:
    """Adds up the columns of x that each kept weight meets."""
    out = np.zeros((3, 4))
    for j, kept in np.ndindex(value.shape):
        group = kept // 2
        nibble = int(place[j, group // 2]) >> 4 * (group % 2) & 15
        column = 4 * group + (nibble >> 2 * (kept % 2) & 3)
        out[:, j] += value[j, kept] * x[:, column]
    return (out,)
