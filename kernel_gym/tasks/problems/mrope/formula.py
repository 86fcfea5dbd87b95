"""The turn as a product of complex numbers."""

from __future__ import annotations

import numpy as np

SMALL = {"tokens": 5, "heads": 2, "head_dim": 64}
BYTES = 5 * 64 * 12


def formula(
    x: np.ndarray, cos: np.ndarray, sin: np.ndarray, temporal: int, spatial: int
) -> tuple[np.ndarray, ...]:
    """Pair by pair."""
    out = np.empty_like(x)
    for i in range(32):
        axis = 0 if i < temporal else 1 if i < temporal + spatial else 2
        turn = (cos[axis, :, i] + 1j * sin[axis, :, i])[:, None]
        z = (x[:, :, i] + 1j * x[:, :, i + 32]) * turn
        out[:, :, i], out[:, :, i + 32] = z.real, z.imag
    return (out,)
