"""Pixel shuffle by strided assignment."""

import numpy as np

SMALL = {"batch": 2, "channels": 2, "height": 3, "width": 4, "factor": 2}


def formula(x: np.ndarray, factor: int) -> tuple[np.ndarray, ...]:
    """Each group of channels fills one phase of the pixels."""
    batch, deep, height, width = x.shape
    out = np.empty((batch, deep // factor**2, height * factor, width * factor))
    for i, j in np.ndindex(factor, factor):
        out[:, :, i::factor, j::factor] = x[:, i * factor + j :: factor**2]
    return (out,)
