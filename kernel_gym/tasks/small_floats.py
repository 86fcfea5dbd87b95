"""8-bit floats, and the architectures that have instructions for them.

There are the formats of the Open Compute Project (OCP 8-bit Floating Point Specification, 1.0) and
the older formats of gfx942 without infinities and negative zero (Noune et al., arXiv:2206.02915).
The same bits mean values that differ by a factor of two. So a problem with one of these dtypes runs
only on devices that have instructions for it.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from kernel_gym.errors import InputError
from kernel_gym.tasks.problem import Problem

FNUZ = frozenset({torch.float8_e4m3fnuz, torch.float8_e5m2fnuz})
OCP = frozenset({torch.float8_e4m3fn, torch.float8_e5m2})

_NATIVE: Mapping[str, frozenset[torch.dtype]] = {
    "gfx94": FNUZ,
    "gfx95": OCP,
    "gfx12": OCP,
    "sm_89": OCP,
    "sm_9": OCP,
    "sm_10": OCP,
    "sm_12": OCP,
}
"""Native 8-bit floats by the start of an architecture's name. Others have none."""


def native_small_floats(arch: str) -> frozenset[torch.dtype]:
    """Returns the 8-bit floats with instructions on an architecture such as gfx942 or sm_90a."""
    return next((kinds for start, kinds in _NATIVE.items() if arch.startswith(start)), frozenset())


def runs_on(problem: Problem, arch: str) -> bool:
    """Whether an architecture has instructions for all 8-bit floats of a problem."""
    return not _foreign(problem, arch)


def require_runs_on(problem: Problem, arch: str) -> None:
    """Raises UnfitDevice if `runs_on` is false."""
    foreign = _foreign(problem, arch)
    if foreign:
        names = ", ".join(sorted(str(dtype).removeprefix("torch.") for dtype in foreign))
        fit = [start for start, kinds in _NATIVE.items() if foreign <= kinds]
        raise UnfitDevice(
            f"{problem.name} holds {names}, for which {arch} has no instructions; "
            f"expected a device of {' or '.join(f'{start}*' for start in fit)}"
        )


class UnfitDevice(InputError, ValueError):
    """The device of a task has no instructions for its dtypes."""


def _foreign(problem: Problem, arch: str) -> frozenset[torch.dtype]:
    return (problem.dtypes & (FNUZ | OCP)) - native_small_floats(arch)
