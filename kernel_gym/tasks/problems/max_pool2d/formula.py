"""Maximum pooling window by window."""

import numpy as np

SMALL = {"planes": 2, "height": 6, "width": 5}


def formula(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """The maximum of the part of each window inside the plane."""
    planes, height, width = x.shape
    out = np.empty((planes, (height + 1) // 2, (width + 1) // 2))
    for p, i, j in np.ndindex(out.shape):
        out[p, i, j] = x[p, max(2 * i - 1, 0) : 2 * i + 2, max(2 * j - 1, 0) : 2 * j + 2].max()
    return (out,)
