"""Quantisation checked against the list of the format's values."""

from __future__ import annotations

import numpy as np

from kernel_gym.tasks.problems.quantize_fp8_group.formula import SMALL, check_against

__all__ = ["SMALL", "check"]


def check(found: tuple[np.ndarray, ...], inputs: dict[str, np.ndarray]) -> None:
    """Finite values of e4m3fn: bias 7, subnormals below 2^-6, the largest 448, no infinity."""
    whole = [(1 + m / 8) * 2.0 ** (e - 7) for e in range(1, 16) for m in range(8)]
    small = [m / 8 * 2.0**-6 for m in range(8)]
    values = np.array([*small, *whole[:-1]])  # the last pattern is NaN
    assert values[-1] == 448
    check_against(values, found, inputs)
