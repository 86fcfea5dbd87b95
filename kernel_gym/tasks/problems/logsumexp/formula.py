"""Log-sum-exp pair by pair."""

import numpy as np

SMALL = {"rows": 5, "cols": 33}


def formula(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """A fold of logaddexp."""
    return (np.logaddexp.reduce(x, axis=1),)
