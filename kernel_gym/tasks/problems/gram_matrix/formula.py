"""The Gram matrix as a mean of outer products."""

from __future__ import annotations

import numpy as np

SMALL = {"batch": 2, "channels": 5, "positions": 21}


def formula(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """Averages over the positions."""
    return (np.stack([np.mean([np.outer(c, c) for c in m.T], axis=0) for m in x]),)
