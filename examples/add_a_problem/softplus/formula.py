"""Softplus a second time, with numpy. It checks the oracle."""

from __future__ import annotations

import numpy as np

SMALL = {"rows": 4, "cols": 31}


def formula(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """Computes log(exp(0) + exp(x))."""
    return (np.logaddexp(0.0, x),)
