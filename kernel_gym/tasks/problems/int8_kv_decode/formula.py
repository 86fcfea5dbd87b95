"""Decoding key by key."""

from __future__ import annotations

import numpy as np

SMALL = {"batch": 2, "kv_heads": 2, "group": 3, "keys": 9, "head_dim": 64}
BYTES = 2 * (4 * 6 * 64 + 2 * 2 * 68 + 4)


def formula(
    q: np.ndarray,
    k_code: np.ndarray,
    k_scale: np.ndarray,
    v_code: np.ndarray,
    v_scale: np.ndarray,
    length: np.ndarray,
    scale: float,
) -> tuple[np.ndarray, ...]:
    """Scales every key and value by itself."""
    out = np.zeros_like(q)
    for b, h in np.ndindex(q.shape[:2]):
        seen = range(length[b])
        scores = np.array([k_code[b, j, h // 3] @ q[b, h] * k_scale[b, j, h // 3] for j in seen])
        weights = np.exp((scores - scores.max()) * scale)
        values = [w * v_scale[b, j, h // 3] * v_code[b, j, h // 3] for j, w in enumerate(weights)]
        out[b, h] = sum(values) / weights.sum()
    return (out,)
