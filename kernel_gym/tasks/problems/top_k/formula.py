"""Top-k by a full sort in Python."""

import numpy as np

SMALL = {"rows": 6, "cols": 29, "k": 5}


def formula(x: np.ndarray, k: int) -> tuple[np.ndarray, ...]:
    """Sorts pairs of value and place."""
    rows = [sorted(enumerate(row), key=lambda pair: (-pair[1], pair[0]))[:k] for row in x]
    return np.array([[v for _, v in row] for row in rows]), np.array(
        [[i for i, _ in row] for row in rows]
    )
