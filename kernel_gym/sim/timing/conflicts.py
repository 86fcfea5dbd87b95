"""Bank conflicts of LDS: the accesses that take more cycles than their lanes need.

The recorder counts the cycles of each access (`csrc/timing/shapes.cpp`): a bank serves one word in
a cycle, so distinct words in one bank take a cycle each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypedDict

import numpy as np
import numpy.typing as npt

from kernel_gym.sim import constants as hw
from kernel_gym.sim import layouts

MAX_CONFLICTS = 4
"""Most source lines with conflicts that a profile names."""
MIN_FACTOR = 1.5
"""An access has conflicts if it takes this multiple of the cycles that its lanes need, or more."""


class BankConflict(TypedDict):
    """An instruction whose accesses of LDS have conflicts."""

    instruction: int
    cycles: float
    """Cycles of an access, on average."""
    least: float
    """Cycles of an access without conflicts."""


def bank_conflicts(accesses: npt.NDArray[np.float64]) -> list[BankConflict]:
    """Returns the instructions that lose most cycles by conflicts, the worst one first.

    Args:
        accesses: Counts of each instruction in the order of `layouts.AccessCounts`.
    """
    names = layouts.field_names(layouts.AccessCounts)
    column = {name: accesses[:, i] for i, name in enumerate(names)}
    lost: list[tuple[float, BankConflict]] = []
    for number in np.flatnonzero(column["lds_cycles"]):
        runs, lanes, moved, cycles = (
            float(column[name][number]) for name in ("executions", "lanes", "bytes", "lds_cycles")
        )
        words = math.ceil(moved / lanes / 4)
        least = math.ceil(lanes / runs / _lanes_a_cycle(words))
        if cycles >= MIN_FACTOR * least * runs:
            conflict = BankConflict(
                instruction=int(number), cycles=round(cycles / runs, 1), least=float(least)
            )
            lost.append((cycles - least * runs, conflict))
    lost.sort(key=lambda entry: -entry[0])
    return [conflict for _, conflict in lost]


def worst_of_lines(conflicts: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Returns the worst conflict of each source line: a loop that is unrolled has many.

    Args:
        conflicts: Conflicts with their `source`, the worst one first; those without a line stay.
    """
    lines: dict[object, Mapping[str, object]] = {}
    for number, conflict in enumerate(conflicts):
        lines.setdefault(conflict["source"] or number, conflict)
    return list(lines.values())[:MAX_CONFLICTS]


def _lanes_a_cycle(words: int) -> int:
    """Returns the lanes that take part in one cycle without conflicts."""
    if words == 1:
        return hw.LDS_BANKS
    return hw.LDS_BANKS // words if words in (2, 4) else 8
