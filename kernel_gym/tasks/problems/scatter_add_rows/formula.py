"""Scatter-add by a product with the one-hot matrix of the indices."""

import numpy as np

SMALL = {"tokens": 9, "num_rows": 4, "dim": 3}


def formula(values: np.ndarray, ids: np.ndarray, num_rows: int) -> tuple[np.ndarray, ...]:
    """Column r of the one-hot matrix says which values go to row r."""
    return ((ids[:, None] == np.arange(num_rows)).T.astype(int) @ values,)
