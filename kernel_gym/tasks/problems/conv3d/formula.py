"""Convolution voxel by voxel."""

from __future__ import annotations

import numpy as np

SMALL = {
    "batch": 2,
    "channels": 3,
    "filters": 2,
    "depth": 3,
    "height": 4,
    "width": 5,
    "window": 3,
    "stride": 2,
}
BYTES = 2 * (2 * 12 * 5 + 2 * 3 * 27 + 2)


def formula(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, stride: int
) -> tuple[np.ndarray, ...]:
    """Every filter against the cube around every voxel."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1), (1, 1)))
    out = np.empty((len(x), len(weight), *(-(-side // stride) for side in x.shape[2:])))
    for b, f, i, j, k in np.ndindex(out.shape):
        a, c, d = (slice(at * stride, at * stride + 3) for at in (i, j, k))
        out[b, f, i, j, k] = np.vdot(padded[b, :, a, c, d], weight[f]) + bias[f]
    return (out,)
