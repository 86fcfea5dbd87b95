"""Row gather by products with one-hot rows."""

import numpy as np

SMALL = {"vocab": 7, "tokens": 5, "dim": 6}
BYTES = 8 * 5 + 2 * 5 * 6 + 2 * 2 * 6


def formula(table: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, ...]:
    """The rows of an identity matrix pick the rows of the table."""
    return (np.eye(len(table))[ids] @ table,)
