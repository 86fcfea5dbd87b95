"""Non-maximum suppression with a list of the kept boxes."""

import numpy as np

SMALL = {"batch": 2, "count": 24}


def _overlap(a: np.ndarray, b: np.ndarray) -> float:
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    common = float(np.prod(sides)) if (sides > 0).all() else 0.0
    return common / float(np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - common)


def formula(boxes: np.ndarray, threshold: float) -> tuple[np.ndarray, ...]:
    """A box joins the list unless one in it overlaps it too much."""
    flags = []
    for entry in boxes:
        kept: list[np.ndarray] = []
        for box in entry:
            free = all(_overlap(box, other) <= threshold for other in kept)
            kept += [box] * free
            flags.append(free)
    return (np.array(flags, dtype=int).reshape(boxes.shape[:2]),)
