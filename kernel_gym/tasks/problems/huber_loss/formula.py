"""Huber loss by its two cases."""

import math

import numpy as np

SMALL = {"rows": 5, "cols": 33}


def formula(prediction: np.ndarray, target: np.ndarray, delta: float) -> tuple[np.ndarray, ...]:
    """One exact sum a row."""

    def loss(d: float) -> float:
        return d * d / 2 if abs(d) <= delta else delta * (abs(d) - delta / 2)

    rows = prediction - target
    return (np.array([math.fsum(map(loss, row)) / len(row) for row in rows]),)
