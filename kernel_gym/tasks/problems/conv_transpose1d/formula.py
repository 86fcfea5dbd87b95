"""Transposed convolution: the filters stamped at every sample, then the ends cut off."""

import numpy as np

SMALL = {"batch": 2, "channels": 3, "filters": 2, "time": 4, "stride": 2}


def formula(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, stride: int
) -> tuple[np.ndarray, ...]:
    """One stamp after another."""
    batch, _, time = x.shape
    out = np.zeros((batch, weight.shape[1], (time + 1) * stride))
    for t in range(time):
        out[:, :, t * stride : (t + 2) * stride] += np.tensordot(x[:, :, t], weight, axes=1)
    cut = stride // 2
    return (out[:, :, cut : cut + time * stride] + bias[:, None],)
