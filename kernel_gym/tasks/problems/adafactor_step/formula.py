"""Adafactor with the outer product of the means."""

from __future__ import annotations

import math

import numpy as np

SMALL = {"rows": 5, "cols": 7}


def formula(
    param: np.ndarray,
    grad: np.ndarray,
    row: np.ndarray,
    col: np.ndarray,
    lr: float,
    decay: float,
    eps: float,
    limit: float,
) -> tuple[np.ndarray, ...]:
    """As the paper's algorithm 4 states it, with means for sums."""
    r, c = row.copy(), col.copy()
    for i in range(5):
        r[i] += (1 - decay) * (sum(grad[i, j] ** 2 + eps for j in range(7)) / 7 - row[i])
    for j in range(7):
        c[j] += (1 - decay) * (sum(grad[i, j] ** 2 + eps for i in range(5)) / 5 - col[j])
    u = grad / np.sqrt(np.outer(r, c) * 5 / sum(r))
    return param - lr * u / max(1.0, np.linalg.norm(u) / math.sqrt(35) / limit), r, c
