"""Grouped convolution tap by tap, with the bounds tested at each tap."""

from __future__ import annotations

import numpy as np

SMALL = {
    "batch": 2,
    "groups": 2,
    "channels": 3,
    "filters": 2,
    "height": 5,
    "width": 4,
    "window": 3,
    "stride": 2,
    "dilation": 2,
}
BYTES = 2 * (2 * 6 * 10 + 4 * 27)


def formula(
    x: np.ndarray, weight: np.ndarray, groups: int, stride: int, dilation: int
) -> tuple[np.ndarray, ...]:
    """Adds up the taps that are inside the image."""
    batch, _, height, width = x.shape
    out = np.zeros((batch, len(weight), -(-height // stride), -(-width // stride)))
    for b, f, y, z in np.ndindex(out.shape):
        group = f // (len(weight) // groups)
        for c, i, j in np.ndindex(weight.shape[1:]):
            r, s = y * stride + (i - 1) * dilation, z * stride + (j - 1) * dilation
            if 0 <= r < height and 0 <= s < width:
                out[b, f, y, z] += x[b, group * 3 + c, r, s] * weight[f, c, i, j]
    return (out,)
