"""AdamW parameter by parameter."""

import math

import numpy as np

SMALL = {"rows": 3, "cols": 5}


def formula(
    param: np.ndarray,
    grad: np.ndarray,
    m: np.ndarray,
    v: np.ndarray,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    decay: float,
    step: int,
) -> tuple[np.ndarray, ...]:
    """Python floats in loops."""
    new = tuple(np.empty_like(param) for _ in range(3))
    for at in np.ndindex(param.shape):
        mean = m[at] + (1 - beta1) * (grad[at] - m[at])
        square = v[at] + (1 - beta2) * (grad[at] ** 2 - v[at])
        unbiased = square / -math.expm1(step * math.log(beta2))
        update = mean / (1 - beta1**step) / (math.sqrt(unbiased) + eps)
        new[0][at] = param[at] - lr * (update + decay * param[at])
        new[1][at], new[2][at] = mean, square
    return new
