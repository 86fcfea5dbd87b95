"""The gather choice by choice."""

from __future__ import annotations

import numpy as np

SMALL = {"tokens": 7, "top_k": 2, "rows": 19, "hidden": 3}
BYTES = 4 * 14 + 2 * 19 * 3


def formula(x: np.ndarray, place: np.ndarray, rows: int) -> tuple[np.ndarray, ...]:
    """Looks for the choice of every row."""
    out, flat = np.zeros((rows, x.shape[1])), list(place.ravel())
    for row in range(rows):
        if row in flat:
            out[row] = x[flat.index(row) // 2]
    return (out,)
