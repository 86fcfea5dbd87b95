"""Scalar arguments that take several values, one for each workload."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TypeVar

from kernel_gym.tasks.workload import Workload

_Scalar = TypeVar("_Scalar", int, float)


def one_of(name: str, values: Sequence[_Scalar], workload: Workload) -> _Scalar:
    """Returns the value of a scalar argument in a workload.

    The sizes and the distribution of the workload decide, not the seed of the data: a workload that
    is called again has the same arguments, so that the same kernel runs.

    Args:
        name: The argument's name. Arguments with different names vary independently.
        values: Several legal values that change the result.
        workload: The workload of the call.
    """
    text = f"{name} {sorted(workload.dims.items())} {workload.distribution}"
    return values[zlib.crc32(text.encode()) % len(values)]
