"""Causal convolution by numpy's full one, cut after the last step."""

import numpy as np

SMALL = {"batch": 2, "channels": 3, "time": 9, "taps": 4}


def formula(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, ...]:
    """Convolution turns the taps around."""
    y = np.empty_like(x)
    for b, c in np.ndindex(x.shape[:2]):
        y[b, c] = np.convolve(x[b, c], weight[c, ::-1])[: x.shape[2]] + bias[c]
    return (np.where(y < -30, y * np.exp(np.minimum(y, 0)), y * (1 + np.tanh(y / 2)) / 2),)
