"""Running sums with a loop."""

from __future__ import annotations

import numpy as np

SMALL = {"count": 50}


def formula(x: np.ndarray, head: np.ndarray) -> tuple[np.ndarray, ...]:
    """Forgets the sum at each mark."""
    out, total = [], 0.0
    for value, mark in zip(x, head, strict=True):
        total = value if mark else total + value
        out.append(total)
    return (np.array(out),)
