"""Nesterov momentum as one combination of the three vectors each."""

import numpy as np

SMALL = {"rows": 3, "cols": 5}


def formula(
    param: np.ndarray,
    grad: np.ndarray,
    velocity: np.ndarray,
    lr: float,
    momentum: float,
    decay: float,
) -> tuple[np.ndarray, ...]:
    """The coefficients are multiplied out."""
    stack = np.stack([param, grad, velocity])
    ahead = lr * (1 + momentum)
    to_param = np.array([1 - ahead * decay, -ahead, -lr * momentum**2])
    to_velocity = np.array([decay, 1.0, momentum])
    return to_param @ stack, to_velocity @ stack
