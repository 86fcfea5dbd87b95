"""Paged decode key by key."""

from __future__ import annotations

import numpy as np

SMALL = {"batch": 2, "kv_heads": 2, "group": 3, "pages": 3, "head_dim": 64}
BYTES = 2 * (2 * 64 * 2 * (3 + 3) + 4) + 2 * 64 * 2 * 2 * (24 + 1) + 4 * (2 + 1)


def formula(
    q: np.ndarray,
    k_cache: np.ndarray,
    v_cache: np.ndarray,
    table: np.ndarray,
    length: np.ndarray,
    scale: float,
) -> tuple[np.ndarray, ...]:
    """Looks every key up by itself."""
    out = np.zeros_like(q)
    for b, h in np.ndindex(q.shape[:2]):
        at = [(table[b, j // 16], j % 16, h // 3) for j in range(length[b])]
        scores = np.array([k_cache[i] @ q[b, h] for i in at]) * scale
        weights = np.exp(scores - scores.max())
        out[b, h] = sum(w * v_cache[i] for w, i in zip(weights, at, strict=True)) / weights.sum()
    return (out,)
