"""Ball query with lists."""

from __future__ import annotations

import numpy as np

SMALL = {"batch": 2, "size": 30, "centre_count": 12, "count": 5}
BYTES = 4 * 2 * 12 * 8


def formula(
    points: np.ndarray, centres: np.ndarray, radius: float, count: int
) -> tuple[np.ndarray, ...]:
    """Filters, cuts, pads."""
    out = np.zeros((*centres.shape[:2], count), dtype=np.int64)
    for b, c in np.ndindex(centres.shape[:2]):
        distances = np.linalg.norm(points[b] - centres[b, c], axis=1)
        near = [i for i, d in enumerate(distances) if d < radius][:count]
        out[b, c] = near + [near[0] if near else 0] * (count - len(near))
    return (out,)
