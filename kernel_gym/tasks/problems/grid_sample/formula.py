"""Grid sample place by place, over all pixels within reach."""

import numpy as np

SMALL = {"batch": 2, "channels": 3, "height": 4, "width": 5, "places": 9}
BYTES = 2 * (8 * 9 + 2 * 3 * (9 // 4 + 9))


def formula(x: np.ndarray, grid: np.ndarray) -> tuple[np.ndarray, ...]:
    """Every pixel has a hat of width two in both directions."""
    batch, channels, height, width = x.shape
    out = np.zeros((batch, channels, grid.shape[1]))
    for b, p in np.ndindex(batch, grid.shape[1]):
        at_x = (grid[b, p, 0] + 1) / 2 * width - 0.5
        at_y = (grid[b, p, 1] + 1) / 2 * height - 0.5
        hat_x = np.maximum(1 - np.abs(at_x - np.arange(width)), 0)
        hat_y = np.maximum(1 - np.abs(at_y - np.arange(height)), 0)
        out[b, :, p] = np.einsum("y,x,cyx->c", hat_y, hat_x, x[b])
    return (out,)
