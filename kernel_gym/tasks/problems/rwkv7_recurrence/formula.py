"""RWKV-7 as products of transition matrices."""

from __future__ import annotations

import numpy as np

SMALL = {"batch": 2, "seq": 5, "heads": 2}


def formula(
    r: np.ndarray, w: np.ndarray, k: np.ndarray, v: np.ndarray, a: np.ndarray, b: np.ndarray
) -> tuple[np.ndarray, ...]:
    """S becomes S (diag(w) + a b^T) + v k^T."""
    out = np.zeros_like(v)
    for n, h in np.ndindex(2, 2):
        state = np.zeros((64, 64))
        for t in range(5):
            at = n, t, h
            state = state @ (np.diag(w[at]) + np.outer(a[at], b[at])) + np.outer(v[at], k[at])
            out[at] = state @ r[at]
    return (out,)
