"""Bilinear interpolation by numpy's one-dimensional one, twice."""

import numpy as np

SMALL = {"planes": 2, "height": 4, "width": 5, "to_height": 7, "to_width": 3}


def _resize(x: np.ndarray, count: int) -> np.ndarray:
    side = x.shape[-1]
    places = (np.arange(count) + 0.5) * side / count - 0.5
    return np.apply_along_axis(lambda line: np.interp(places, np.arange(side), line), -1, x)


def formula(x: np.ndarray, to_height: int, to_width: int) -> tuple[np.ndarray, ...]:
    """Along rows, then along columns."""
    rows = _resize(x, to_width)
    return (_resize(rows.swapaxes(1, 2), to_height).swapaxes(1, 2),)


BYTES = 2 * 2 * (4 * 3 + 7 * 3)
