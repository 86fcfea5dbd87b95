"""RMSprop parameter by parameter."""

import numpy as np

SMALL = {"rows": 3, "cols": 5}


def formula(
    param: np.ndarray,
    grad: np.ndarray,
    square: np.ndarray,
    buffer: np.ndarray,
    lr: float,
    alpha: float,
    eps: float,
    momentum: float,
) -> tuple[np.ndarray, ...]:
    """Python floats in loops."""
    new = tuple(np.empty_like(param) for _ in range(3))
    for at in np.ndindex(param.shape):
        s = square[at] + (1 - alpha) * (grad[at] ** 2 - square[at])
        b = momentum * buffer[at] + grad[at] * (s + eps) ** -0.5
        new[0][at], new[1][at], new[2][at] = param[at] - lr * b, s, b
    return new
