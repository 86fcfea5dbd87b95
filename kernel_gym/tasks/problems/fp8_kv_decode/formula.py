"""Paged decoding key by key."""

from __future__ import annotations

import numpy as np

SMALL = {"batch": 2, "kv_heads": 2, "group": 3, "pages": 3, "head_dim": 64}
BYTES = 2 * (4 * 6 * 64 + 2 * 2 * 64 + 8)


def formula(
    q: np.ndarray,
    k_cache: np.ndarray,
    v_cache: np.ndarray,
    table: np.ndarray,
    length: np.ndarray,
    k_scale: float,
    v_scale: float,
    scale: float,
) -> tuple[np.ndarray, ...]:
    """Looks every key up by itself."""
    out = np.zeros_like(q)
    for b, h in np.ndindex(q.shape[:2]):
        at = [(table[b, j // 16], j % 16, h // 3) for j in range(length[b])]
        scores = np.array([k_cache[i] @ q[b, h] for i in at]) * k_scale * scale
        weights = np.exp(scores - scores.max())
        values = sum(w * v_cache[i] for w, i in zip(weights, at, strict=True))
        out[b, h] = values * v_scale / weights.sum()
    return (out,)
