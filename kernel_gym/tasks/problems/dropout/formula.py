"""Dropout element by element, Philox in Python's whole numbers."""

import numpy as np

SMALL = {"rows": 5, "cols": 7}
WORD = (1 << 32) - 1


def philox(counter: int, key: int) -> list[int]:
    """Philox-4x32-10 of a counter of 128 bits and a key of 64."""
    c = [counter >> 32 * i & WORD for i in range(4)]
    for r in range(10):
        k0 = (key & WORD) + r * 0x9E3779B9 & WORD
        k1 = (key >> 32) + r * 0xBB67AE85 & WORD
        hi0, lo0 = divmod(0xD2511F53 * c[0], 1 << 32)
        hi1, lo1 = divmod(0xCD9E8D57 * c[2], 1 << 32)
        c = [hi1 ^ c[1] ^ k0, lo1, hi0 ^ c[3] ^ k1, lo0]
    return c


# The known answers that the generator's authors publish with it (kat_vectors of Random123).
assert philox(0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
assert philox((1 << 128) - 1, (1 << 64) - 1) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]


def formula(x: np.ndarray, p: float, seed: int, offset: int) -> tuple[np.ndarray, ...]:
    """One generator call an element."""
    out = np.zeros(x.size)
    for e, value in enumerate(x.flat):
        word = philox(offset << 64 | e // 4, seed)[e % 4]
        if (word >> 8) / (1 << 24) >= p:
            out[e] = value / (1 - p)
    return (out.reshape(x.shape),)
