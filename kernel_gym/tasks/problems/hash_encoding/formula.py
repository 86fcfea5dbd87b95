"""Hash encoding corner by corner with Python's own integers."""

from __future__ import annotations

import math

import numpy as np

SMALL = {"points": 6, "levels": 3, "size": 29}
BYTES = 12 * 6 + 8 * 3 + 4 * 18


def formula(point: np.ndarray, table: np.ndarray, resolution: np.ndarray) -> tuple[np.ndarray, ...]:
    """Interpolates on one axis after the other."""
    out = np.zeros((6, 6))
    for i, level in np.ndindex(6, 3):
        at = [float(np.float32(x) * np.float32(resolution[level])) for x in point[i]]
        low = [math.floor(x) for x in at]
        cube = np.zeros((2, 2, 2, 2))
        for a, b, c in np.ndindex(2, 2, 2):
            code = (low[0] + a) ^ (low[1] + b) * 2654435761 ^ (low[2] + c) * 805459861
            cube[a, b, c] = table[level, code % 2**32 % 29]
        for x, whole in zip(at, low, strict=True):
            cube = (1 - (x - whole)) * cube[0] + (x - whole) * cube[1]
        out[i, 2 * level : 2 * level + 2] = cube
    return (out,)
