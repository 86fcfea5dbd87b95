"""Log-softmax by pairwise logaddexp."""

import numpy as np

SMALL = {"rows": 4, "cols": 21}


def formula(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """Each row minus the logarithm of its sum of exponentials."""
    return (x - np.logaddexp.reduce(x, axis=1)[:, None],)
