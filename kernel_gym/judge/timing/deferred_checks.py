"""Timed calls whose outputs are checked when all is timed (rule 17).

The oracle of a call takes longer than the call, and would put work of the judge between two blocks
that are compared. So what went in and what came out is kept on the spot, and judged later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from kernel_gym.judge.expected import answer, compare
from kernel_gym.tasks.problem import Problem, Value
from kernel_gym.tasks.workload import Workload

KEPT_BYTES = 3 << 30
"""Beyond so many they are judged at once."""


@dataclass(frozen=True)
class _Call:
    problem: Problem
    workload: Workload
    inputs: Mapping[str, Value]
    outputs: tuple[torch.Tensor, ...]


class Kept:
    """Calls that wait for their verdict."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._bytes = 0

    @property
    def full(self) -> bool:
        """Whether they should be judged before more are added."""
        return self._bytes > KEPT_BYTES

    def add(
        self,
        problem: Problem,
        workload: Workload,
        inputs: Mapping[str, Value],
        outputs: tuple[torch.Tensor, ...],
    ) -> None:
        """Keeps what a call was given, which nobody may change, and a copy of what it returned."""
        call = _Call(problem, workload, inputs, tuple(output.clone() for output in outputs))
        tensors = [v for v in inputs.values() if isinstance(v, torch.Tensor)]
        self._bytes += sum(t.nbytes for t in (*tensors, *call.outputs))
        self._calls.append(call)

    def check(self) -> str:
        """Judges all of them; says what is wrong with the first that is, and forgets them."""
        calls, self._calls, self._bytes = self._calls, [], 0
        for call in calls:
            where = call.outputs[0].device
            found = compare(call.problem, answer(call.problem, call.inputs, where), call.outputs)
            if not found.passed:
                return f"wrong values in a timed call on {call.workload}: {found.message}"
        return ""
