"""Rotation back by complex numbers."""

from __future__ import annotations

import numpy as np

SMALL = {"tokens": 5, "heads": 3, "kv_heads": 2, "head_dim": 32, "context": 7}
BYTES = 4 * 5 * (3 + 2) * 32 + 8 * 5 + 4 * 32


def formula(
    gq: np.ndarray, gk: np.ndarray, cos: np.ndarray, sin: np.ndarray, position: np.ndarray
) -> tuple[np.ndarray, ...]:
    """The gradient of a rotation is a product with the conjugate."""
    turn = (cos - 1j * sin)[position][:, None, :]

    def back(g: np.ndarray) -> np.ndarray:
        z = (g[..., :16] + 1j * g[..., 16:]) * turn
        return np.concatenate([z.real, z.imag], axis=-1)

    return back(gq), back(gk)
