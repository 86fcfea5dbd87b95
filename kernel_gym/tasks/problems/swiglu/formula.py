"""SwiGLU with the logistic function of scipy."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

SMALL = {"rows": 3, "cols": 13}


def formula(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """Gate times its logistic times the other half."""
    half = x.shape[1] // 2
    return (x[:, :half] * expit(x[:, :half]) * x[:, half:],)
