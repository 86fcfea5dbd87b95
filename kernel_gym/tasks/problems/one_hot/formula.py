"""One-hot rows from an identity matrix with a row of zeros at its end."""

import numpy as np

SMALL = {"tokens": 9, "num_classes": 4}


def formula(ids: np.ndarray, num_classes: int) -> tuple[np.ndarray, ...]:
    """Index -1 picks the last row."""
    rows = np.vstack([np.eye(num_classes, dtype=int), np.zeros((1, num_classes), dtype=int)])
    return (rows[ids],)
