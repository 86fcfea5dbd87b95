"""Causal attention with capped scores, one query at a time."""

from __future__ import annotations

import numpy as np

SMALL = {"batch": 2, "kv_heads": 2, "group": 3, "seq": 7, "head_dim": 64}


def formula(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, cap: float, scale: float
) -> tuple[np.ndarray, ...]:
    """Weighs the values of the keys that the query sees."""
    out = np.zeros_like(q)
    for b, h, i in np.ndindex(q.shape[:3]):
        seen = range(i + 1)
        scores = cap * np.tanh((k[b, h // 3, list(seen)] @ q[b, h, i] * scale) / cap)
        weights = np.exp(scores - scores.max())
        out[b, h, i] = weights @ v[b, h // 3, list(seen)] / weights.sum()
    return (out,)
