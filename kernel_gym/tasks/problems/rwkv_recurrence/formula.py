"""RWKV-6 unrolled: every output as a sum over all earlier pairs."""

from __future__ import annotations

import numpy as np

SMALL = {"batch": 2, "seq": 5, "heads": 2}


def formula(
    r: np.ndarray, k: np.ndarray, v: np.ndarray, w: np.ndarray, u: np.ndarray
) -> tuple[np.ndarray, ...]:
    """The pair of s counts at t > s by the decays of s + 1 .. t - 1."""
    out = np.zeros_like(v)
    for b, t, h in np.ndindex(r.shape[:3]):
        for s in range(t + 1):
            share = u[h] if s == t else np.prod(w[b, s + 1 : t, h], axis=0)
            out[b, t, h] += (r[b, t, h] * share * k[b, s, h]).sum() * v[b, s, h]
    return (out,)
