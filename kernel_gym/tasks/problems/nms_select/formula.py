"""Greedy selection by counting the pixels that two boxes share."""

from __future__ import annotations

import numpy as np

SMALL = {"batch": 2, "count": 12}


def formula(boxes: np.ndarray, threshold: float) -> tuple[np.ndarray, ...]:
    """Coordinates are whole, so a box is a set of unit squares."""
    keep = np.zeros(boxes.shape[:2], dtype=np.int64)
    for b in range(len(boxes)):
        kept: list[np.ndarray] = []
        for i, (x0, y0, x1, y1) in enumerate(boxes[b].astype(int)):
            image = np.zeros((600, 600), dtype=bool)
            image[y0:y1, x0:x1] = True
            if all((image & k).sum() <= threshold * (image | k).sum() for k in kept):
                keep[b, i] = 1
                kept.append(image)
    return (keep,)
