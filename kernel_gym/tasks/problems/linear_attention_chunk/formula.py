"""Linear attention as a recurrence over its state."""

from __future__ import annotations

import numpy as np

SMALL = {"batch": 2, "heads": 2, "seq": 9, "head_dim": 16}


def formula(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, decay: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Decays the state, adds an outer product, reads it with the query."""
    out = np.zeros_like(q)
    for b, h in np.ndindex(q.shape[:2]):
        state = np.zeros((16, 16))
        for t in range(q.shape[2]):
            state = decay[h] * state + np.outer(k[b, h, t], v[b, h, t])
            out[b, h, t] = q[b, h, t] @ state
    return (out,)
