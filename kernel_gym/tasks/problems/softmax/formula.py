"""Softmax by scipy."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

SMALL = {"rows": 4, "cols": 21}
FLOPS = 5 * 4 * 21


def formula(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """Over the last axis."""
    return (softmax(x, axis=-1),)
