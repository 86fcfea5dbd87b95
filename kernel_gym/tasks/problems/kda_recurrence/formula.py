"""The rule as products of transition matrices."""

from __future__ import annotations

import numpy as np

SMALL = {"batch": 2, "seq": 7, "heads": 2, "head_dim": 16}


def formula(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, g: np.ndarray, beta: np.ndarray, scale: float
) -> tuple[np.ndarray, ...]:
    """S becomes (1 - beta k k^T) diag(exp(g)) S + beta k v^T."""
    out = np.zeros_like(v)
    for b, h in np.ndindex(2, 2):
        state = np.zeros((16, 16))
        for t in range(7):
            key, rate = k[b, t, h], beta[b, t, h]
            move = (np.eye(16) - rate * np.outer(key, key)) @ np.diag(np.exp(g[b, t, h]))
            state = move @ state + rate * np.outer(key, v[b, t, h])
            out[b, t, h] = scale * state.T @ q[b, t, h]
    return (out,)
