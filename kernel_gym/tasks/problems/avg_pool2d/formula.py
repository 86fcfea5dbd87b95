"""Average pooling window by window."""

import numpy as np

SMALL = {"planes": 2, "height": 5, "width": 4}


def formula(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """The mean of a slice that ends where the plane does."""
    out = np.empty_like(x)
    for p, i, j in np.ndindex(x.shape):
        out[p, i, j] = x[p, max(i - 1, 0) : i + 2, max(j - 1, 0) : j + 2].mean()
    return (out,)
