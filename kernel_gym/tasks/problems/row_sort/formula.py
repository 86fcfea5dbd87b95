"""Python's own sort, which is stable."""

import numpy as np

SMALL = {"rows": 4, "cols": 30}


def formula(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """Sorts places by their values."""
    order = np.array([sorted(range(row.size), key=row.__getitem__) for row in x])
    return np.array([row[o] for row, o in zip(x, order, strict=True)]), order
