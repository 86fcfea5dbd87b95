"""Sorting with Python's own sort."""

from __future__ import annotations

import numpy as np

SMALL = {"count": 60}


def formula(key: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, ...]:
    """By key and place."""
    order = sorted(range(60), key=lambda i: (int(key[i]), i))
    return key[order], value[order]
