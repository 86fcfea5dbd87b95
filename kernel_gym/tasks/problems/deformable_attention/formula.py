"""Deformable attention by bilinear weights over every pixel of a level."""

from __future__ import annotations

import numpy as np

SMALL = {"batch": 2, "queries": 3, "heads": 2, "points": 2, "height": 9, "width": 11}
BYTES = 2 * 3 * 2 * (12 * 8 + 64)


def formula(
    value: np.ndarray, place: np.ndarray, weight: np.ndarray, height: int, width: int
) -> tuple[np.ndarray, ...]:
    """A pixel's share falls linearly from 1 at its centre to 0 at its neighbours'."""
    sizes = [(9, 11), (5, 6), (3, 3), (2, 2)]
    out = np.zeros((*place.shape[:3], 32))
    for b, q, h in np.ndindex(place.shape[:3]):
        first = 0
        for level, (rows, cols) in enumerate(sizes):
            part = value[b, first : first + rows * cols, h].reshape(rows, cols, 32)
            for (x, y), share in zip(place[b, q, h, level], weight[b, q, h, level], strict=True):
                down = np.clip(1 - np.abs(y * rows - (np.arange(rows) + 0.5)), 0, None)
                right = np.clip(1 - np.abs(x * cols - (np.arange(cols) + 0.5)), 0, None)
                out[b, q, h] += share * np.einsum("r,c,rcd->d", down, right, part)
            first += rows * cols
    return (out.reshape(*place.shape[:2], -1),)
