"""Runs by itertools."""

from __future__ import annotations

import itertools

import numpy as np

SMALL = {"count": 60}


def formula(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """Groups equal neighbours."""
    runs = [(key, len(list(group))) for key, group in itertools.groupby(x.tolist())]
    value, length = np.zeros(60), np.zeros(60)
    value[: len(runs)] = [key for key, _ in runs]
    length[: len(runs)] = [size for _, size in runs]
    inverse = [r for r, (_, size) in enumerate(runs) for _ in range(size)]
    return value, length, np.array(inverse), np.array([len(runs)])
