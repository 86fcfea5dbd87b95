"""Gradient of a softmax by its Jacobian."""

from __future__ import annotations

import numpy as np

SMALL = {"rows": 4, "cols": 11}


def formula(grad: np.ndarray, y: np.ndarray, scale: float) -> tuple[np.ndarray, ...]:
    """Multiplies by diag(y) - y y^T, row by row."""
    rows = zip(grad, y, strict=True)
    return (np.stack([scale * (np.diag(p) - np.outer(p, p)) @ g for g, p in rows]),)
