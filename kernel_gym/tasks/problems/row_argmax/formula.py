"""Maximum and its place by numpy."""

from __future__ import annotations

import numpy as np

SMALL = {"rows": 6, "cols": 29}


def formula(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """The first of several equal maxima."""
    return x.max(1), x.argmax(1)
