"""The scan unrolled: every output as a sum over all earlier inputs."""

from __future__ import annotations

import numpy as np

SMALL = {"batch": 2, "channels": 3, "seq": 6}


def formula(
    u: np.ndarray,
    delta: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    skip: np.ndarray,
    bias: np.ndarray,
) -> tuple[np.ndarray, ...]:
    """What entered at s has decayed over the steps s + 1 .. t."""
    step = np.logaddexp(0, delta + bias[:, None])
    out = skip[:, None] * u
    for i, d, t in np.ndindex(u.shape):
        for s in range(t + 1):
            decay = np.exp(a[d] * step[i, d, s + 1 : t + 1].sum())
            out[i, d, t] += step[i, d, s] * u[i, d, s] * (decay * b[i, :, s] * c[i, :, t]).sum()
    return (out,)
