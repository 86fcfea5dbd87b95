"""Latent attention head by head."""

from __future__ import annotations

import numpy as np

SMALL = {"batch": 2, "heads": 3, "context": 9}
BYTES = 2 * (2 * 3 * 576 + 4 + 2 * 3 * 512) + 2 * 576 * (5 + 1)


def formula(
    q: np.ndarray, kv: np.ndarray, length: np.ndarray, scale: float
) -> tuple[np.ndarray, ...]:
    """Latent and rotary scores apart, then a weighted mean of latent rows."""
    out = np.zeros((*q.shape[:2], 512))
    for b, h in np.ndindex(q.shape[:2]):
        latent, rotary = kv[b, : length[b], :512], kv[b, : length[b], 512:]
        scores = scale * (latent @ q[b, h, :512] + rotary @ q[b, h, 512:])
        weights = np.exp(scores - scores.max())
        out[b, h] = weights @ latent / weights.sum()
    return (out,)
