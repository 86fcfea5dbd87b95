"""Window attention by index sums."""

from __future__ import annotations

import numpy as np

SMALL = {"images": 2, "windows": 3, "heads": 2, "side": 3}


def formula(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    bias: np.ndarray,
    mask: np.ndarray,
    scale: float,
) -> tuple[np.ndarray, ...]:
    """Window w is number w % 3 of its image."""
    out = np.zeros_like(q)
    for w, h in np.ndindex(q.shape[:2]):
        scores = scale * np.einsum("id,jd->ij", q[w, h], k[w, h]) + bias[h] + mask[w % 3]
        weights = np.exp(scores - scores.max(1, keepdims=True))
        out[w, h] = (weights / weights.sum(1, keepdims=True)) @ v[w, h]
    return (out,)
