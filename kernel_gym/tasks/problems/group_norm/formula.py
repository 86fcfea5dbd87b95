"""Group normalisation group by group, by numpy's mean and variance."""

import math

import numpy as np

SMALL = {"batch": 2, "num_groups": 3, "group_channels": 2, "pixels": 7}


def formula(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, num_groups: int, eps: float
) -> tuple[np.ndarray, ...]:
    """One slice of channels after another."""
    out = np.empty_like(x)
    width = x.shape[1] // num_groups
    for b, g in np.ndindex(x.shape[0], num_groups):
        part = slice(g * width, (g + 1) * width)
        block = x[b, part]
        normal = (block - block.mean()) / math.sqrt(block.var() + eps)
        out[b, part] = (normal.T * weight[part] + bias[part]).T
    return (out,)
