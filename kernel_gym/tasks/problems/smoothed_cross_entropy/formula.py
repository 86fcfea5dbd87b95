"""Smoothed cross entropy against the smoothed distribution itself."""

import numpy as np

SMALL = {"rows": 12, "classes": 17}


def formula(
    logits: np.ndarray, target: np.ndarray, smoothing: float, ignore_index: int
) -> tuple[np.ndarray, ...]:
    """Minus the expectation of the log-probabilities under the smoothed labels."""
    losses = []
    for x, t in zip(logits, target, strict=True):
        labels = np.full(x.size, smoothing / x.size)
        if t != ignore_index:
            labels[int(t)] += 1 - smoothing
            losses.append(labels @ (np.logaddexp.reduce(x) - x))
        else:
            losses.append(0.0)
    return (np.array(losses),)
