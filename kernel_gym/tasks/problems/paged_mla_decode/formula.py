"""Latent attention, one latent at a time."""

from __future__ import annotations

import numpy as np

SMALL = {"batch": 2, "heads": 3, "pages": 2, "rank": 128, "rope": 32}
BYTES = 2 * (2 * 3 * (2 * 128 + 32) + 2 * 160 + 8)


def formula(
    q: np.ndarray, cache: np.ndarray, table: np.ndarray, length: np.ndarray, rank: int, scale: float
) -> tuple[np.ndarray, ...]:
    """Looks every latent up by itself."""
    out = np.zeros((*q.shape[:2], rank))
    for b, h in np.ndindex(q.shape[:2]):
        at = [(table[b, j // 16], j % 16) for j in range(length[b])]
        scores = np.array([cache[i] @ q[b, h] for i in at]) * scale
        weights = np.exp(scores - scores.max())
        values = sum(w * cache[i][:rank] for w, i in zip(weights, at, strict=True))
        out[b, h] = values / weights.sum()
    return (out,)
