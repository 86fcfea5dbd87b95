"""Histogram by numpy's bincount of what lies in the bins."""

import numpy as np

SMALL = {"rows": 3, "cols": 40, "num_bins": 5}


def formula(codes: np.ndarray, num_bins: int) -> tuple[np.ndarray, ...]:
    """Row by row."""
    inside = [row[(row >= 0) & (row < num_bins)] for row in codes]
    return (np.stack([np.bincount(row, minlength=num_bins) for row in inside]),)
