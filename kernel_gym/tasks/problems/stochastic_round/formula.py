"""Stochastic rounding with whole numbers of Python."""

import struct

import numpy as np

from kernel_gym.tasks.problems.dropout.formula import philox

SMALL = {"rows": 5, "cols": 7}


def formula(x: np.ndarray, seed: int, offset: int) -> tuple[np.ndarray, ...]:
    """One generator call an element; bits by way of the bytes of a float."""
    out = np.zeros(x.size)
    for e, value in enumerate(x.flat):
        block = sum(word << 32 * i for i, word in enumerate(philox(offset << 64 | e // 8, seed)))
        half = block >> 16 * (e % 8) & 0xFFFF
        (bits,) = struct.unpack("<I", struct.pack("<f", value))
        (out[e],) = struct.unpack("<f", struct.pack("<I", (bits + half) >> 16 << 16))
    return (out.reshape(x.shape),)
