"""The product with each weight unpacked by itself."""

from __future__ import annotations

import numpy as np

SMALL = {"m": 3, "n": 16, "k": 256}


def _nibble(word: int, i: int) -> int:
    return int(word) // 16**i % 16


def formula(
    x: np.ndarray, qweight: np.ndarray, scales: np.ndarray, qzeros: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Row i lives in word i // 8, its group is i // 128; column j's zero in word j // 8."""
    weight = np.empty((x.shape[1], scales.shape[1]))
    for i, j in np.ndindex(weight.shape):
        zero = _nibble(qzeros[i // 128, j // 8], j % 8) + 1
        weight[i, j] = (_nibble(qweight[i // 8, j], i % 8) - zero) * scales[i // 128, j]
    return (x @ weight,)
