"""Cross entropy one row at a time, summed exactly."""

from __future__ import annotations

import math

import numpy as np

SMALL = {"rows": 12, "vocab": 17}


def _loss(row: np.ndarray, target: int) -> float:
    top = max(row)
    return top + math.log(math.fsum(math.exp(x - top) for x in row)) - row[target]


def formula(logits: np.ndarray, target: np.ndarray, ignore_index: int) -> tuple[np.ndarray, ...]:
    """Skips the rows whose target is ignored."""
    rows = zip(logits, target, strict=True)
    return (np.array([0.0 if t == ignore_index else _loss(row, int(t)) for row, t in rows]),)
