"""Each prefix summed anew, exactly."""

from __future__ import annotations

import math

import numpy as np

SMALL = {"rows": 3, "cols": 40}
FLOPS = 3 * 40


def formula(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """Sums every prefix of every row."""
    return (np.array([[math.fsum(row[: j + 1]) for j in range(len(row))] for row in x]),)
