"""The write token by token."""

from __future__ import annotations

import numpy as np

SMALL = {"tokens": 21, "heads": 2, "head_dim": 16, "pages": 2}
BYTES = 8 * 21 + 10 * 2 * 2 * (2 * 16) * 2  # slots; ten rows of k and v, read and written


def formula(
    k: np.ndarray, v: np.ndarray, slot: np.ndarray, k_cache: np.ndarray, v_cache: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Divides the slot into page and row."""
    new_k, new_v = k_cache.copy(), v_cache.copy()
    for t, s in enumerate(slot):
        if s != -1:
            new_k[s // 16, s % 16] = k[t]
            new_v[s // 16, s % 16] = v[t]
    return new_k, new_v
