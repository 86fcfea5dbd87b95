"""Row-wise Adagrad row by row."""

import numpy as np

SMALL = {"rows": 4, "dim": 6}


def formula(
    table: np.ndarray, grad: np.ndarray, state: np.ndarray, lr: float, eps: float
) -> tuple[np.ndarray, ...]:
    """The mean square is a scaled inner product."""
    total = np.array([s + g @ g / g.size for s, g in zip(state, grad, strict=True)])
    scale = np.diag(lr / (eps + total**0.5))
    return table - scale @ grad, total
