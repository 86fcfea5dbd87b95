"""Furthest points from the whole matrix of distances."""

from __future__ import annotations

import numpy as np

SMALL = {"batch": 2, "size": 20, "count": 9}


def formula(points: np.ndarray, count: int) -> tuple[np.ndarray, ...]:
    """The furthest of the least distances of each point from the chosen ones."""
    out = []
    for cloud in points:
        apart = ((cloud[:, None] - cloud[None]) ** 2).sum(-1)
        chosen = [0]
        while len(chosen) < count:
            chosen.append(int(apart[:, chosen].min(axis=1).argmax()))
        out.append(chosen)
    return (np.array(out),)
