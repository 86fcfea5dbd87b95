"""Clipping by numpy's norm."""

from __future__ import annotations

import numpy as np

SMALL = {"rows": 3, "cols": 7}


def formula(grad: np.ndarray, limit: float) -> tuple[np.ndarray, ...]:
    """Two cases."""
    norm = np.linalg.norm(grad)
    factor = limit / (norm + 1e-6)
    return (grad if factor >= 1 else grad * factor), np.array([norm])
