"""Column sums as a product with a vector of ones."""

import numpy as np

SMALL = {"rows": 37, "cols": 5}


def formula(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """From the left."""
    return (np.ones(len(x)) @ x,)
