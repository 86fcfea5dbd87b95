"""The rule as products of transition matrices."""

from __future__ import annotations

import numpy as np

SMALL = {"batch": 2, "seq": 7, "heads": 2, "head_dim": 16}


def formula(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, g: np.ndarray, beta: np.ndarray
) -> tuple[np.ndarray, ...]:
    """S becomes exp(g) (1 - beta k k^T) S + beta k v^T."""
    out = np.zeros_like(v)
    for b, h in np.ndindex(q.shape[0], q.shape[2]):
        state = np.zeros((16, 16))
        for t in range(q.shape[1]):
            key, rate = k[b, t, h], beta[b, t, h]
            moved = (np.eye(16) - rate * np.outer(key, key)) @ state
            state = np.exp(g[b, t, h]) * moved + rate * np.outer(key, v[b, t, h])
            out[b, t, h] = state.T @ q[b, t, h]
    return (out,)
