"""Gradients by finite sums over single entries of the softmax's Jacobian."""

from __future__ import annotations

import math

import numpy as np

SMALL = {"batch": 1, "heads": 2, "seq": 5, "head_dim": 64}


def formula(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    out: np.ndarray,
    dout: np.ndarray,
    lse: np.ndarray,
    scale: float,
    causal: int,
) -> tuple[np.ndarray, ...]:
    """Pair by pair of query and key."""
    dq, dk, dv = (np.zeros_like(q) for _ in range(3))
    for b, h, i in np.ndindex(q.shape[:3]):
        for j in range(i + 1 if causal else q.shape[2]):
            p = math.exp(scale * np.vdot(q[b, h, i], k[b, h, j]) - lse[b, h, i])
            ds = p * np.vdot(dout[b, h, i], v[b, h, j] - out[b, h, i])
            dq[b, h, i] += scale * ds * k[b, h, j]
            dk[b, h, j] += scale * ds * q[b, h, i]
            dv[b, h, j] += p * dout[b, h, i]
    return dq, dk, dv
