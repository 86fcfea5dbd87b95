"""Quantisation checked against the list of the format's values."""

from __future__ import annotations

import math

import numpy as np

SMALL = {"rows": 4, "cols": 96}


def check(found: tuple[np.ndarray, ...], inputs: dict[str, np.ndarray]) -> None:
    """The scale is the one of the format, each code the nearest value."""
    whole = [(1 + m / 8) * 2.0 ** (e - 7) for e in range(1, 16) for m in range(8)]
    values = np.array([*(m / 512 for m in range(8)), *whole[:-1]])
    q, scale = found
    for i, block in np.ndindex(4, 3):
        span = slice(32 * block, 32 * block + 32)
        top = np.abs(inputs["x"][i, span]).max()
        expected = max(0, math.floor(math.log2(top)) + 119) if top else 0
        assert scale[i, block] == expected
        part = inputs["x"][i, span] * 2.0 ** (127 - expected)
        nearest = np.abs(np.abs(part)[:, None] - values).min(axis=1)
        assert np.isin(np.abs(q[i, span]), values).all()
        np.testing.assert_array_equal(np.abs(q[i, span] - part), nearest)
