"""The size of the memory that the judge and its workers share on a GPU."""

from __future__ import annotations

import os

from kernel_gym.errors import InputError

VARIABLE = "KERNEL_GYM_ARENA_GIB"
DEFAULT_GIB = 4


def arena_bytes() -> int:
    """Returns the bytes that each evaluator shares with its workers.

    Two sets of inputs and outputs of a timed workload must fit. Larger tasks than usual need a
    larger value of the variable, and fewer evaluators.

    Raises:
        InputError: The variable is no whole number of GiB above 0.
    """
    text = os.environ.get(VARIABLE, str(DEFAULT_GIB))
    if not text.isdigit() or not int(text):
        raise InputError(f"{VARIABLE}: found {text!r}, expected a whole number of GiB above 0")
    return int(text) << 30
