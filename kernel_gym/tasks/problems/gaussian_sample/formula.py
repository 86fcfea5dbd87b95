"""Normal numbers one by one, as complex numbers of a given length and angle."""

import cmath
import math

import numpy as np

from kernel_gym.tasks.problems.dropout.formula import philox

SMALL = {"rows": 5, "cols": 7}


def formula(mean: np.ndarray, logvar: np.ndarray, seed: int, offset: int) -> tuple[np.ndarray, ...]:
    """One generator call an element."""
    out = np.zeros(mean.size)
    for e in range(mean.size):
        words = philox(offset << 64 | e // 4, seed)
        u, v = (word >> 8 for word in (words[:2] if e % 4 < 2 else words[2:]))
        length = math.sqrt(-2 * math.log((u + 1) / (1 << 24)))
        z = cmath.rect(length, 2 * math.pi * v / (1 << 24))
        out[e] = mean.flat[e] + math.sqrt(math.exp(logvar.flat[e])) * (z.imag if e % 2 else z.real)
    return (out.reshape(mean.shape),)
