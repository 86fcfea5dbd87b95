"""Lion parameter by parameter."""

import math
from typing import Any

import numpy as np

SMALL = {"rows": 3, "cols": 5}


def formula(
    param: np.ndarray,
    grad: np.ndarray,
    m: np.ndarray,
    lr: float,
    beta1: float,
    beta2: float,
    decay: float,
) -> tuple[np.ndarray, ...]:
    """Python floats in loops, steps counted from the old values."""
    new_param, new_m = np.empty_like(param), np.empty_like(m)
    for at in np.ndindex(param.shape):
        ahead = m[at] + (1 - beta1) * (grad[at] - m[at])
        way = math.copysign(1, ahead) if ahead else 0
        new_param[at] = param[at] - lr * (way + decay * param[at])
        new_m[at] = m[at] + (1 - beta2) * (grad[at] - m[at])
    return new_param, new_m


def check(found: tuple[np.ndarray, ...], inputs: dict[str, Any]) -> None:
    """The parameters, too, whose check is the problem's own."""
    np.testing.assert_allclose(found[0], formula(**inputs)[0], rtol=1e-12, atol=1e-15)
