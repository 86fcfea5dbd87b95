"""MXFP4 by searching all sixteen values."""

from __future__ import annotations

import numpy as np

SMALL = {"rows": 4, "cols": 96}
VALUES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


def check(found: tuple[np.ndarray, ...], inputs: dict[str, np.ndarray]) -> None:
    """Every code is the nearest value in the block's step, and scales follow from logarithms."""
    packed, scale = found
    code = np.stack([packed % 16, packed // 16], axis=-1).reshape(4, 96)
    for i, j in np.ndindex(4, 3):
        block, own = inputs["x"][i, 32 * j : 32 * j + 32], code[i, 32 * j : 32 * j + 32]
        top = np.abs(block).max()
        expected = max(0, int(np.floor(np.log2(top))) - 2 + 127) if top else 0
        assert scale[i, j] == expected
        values = np.where(own >= 8, -1, 1) * VALUES[own % 8]
        distance = np.abs(np.abs(block)[:, None] / 2.0 ** (expected - 127) - VALUES).min(1)
        moved = np.abs(block / 2.0 ** (expected - 127) - values)
        np.testing.assert_allclose(moved, distance, rtol=0, atol=1e-12)
