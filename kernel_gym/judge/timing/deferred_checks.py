"""Timed calls whose outputs are checked after all timing is done (rule 17).

The oracle takes longer than the call, and would add work of the judge between two blocks that are
compared. So the inputs and outputs are kept when the block ends, and checked later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from kernel_gym.judge.expected import answer, compare
from kernel_gym.tasks.problem import Problem, Value
from kernel_gym.tasks.workload import Workload

MOST_BYTES = 3 << 30
"""If more bytes are kept, the calls are checked at once."""


@dataclass(frozen=True)
class _Call:
    problem: Problem
    workload: Workload
    inputs: Mapping[str, Value]
    outputs: tuple[torch.Tensor, ...]


class DeferredChecks:
    """Calls that wait for their check."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._bytes = 0

    @property
    def full(self) -> bool:
        """Whether the calls should be checked before another one is added."""
        return self._bytes > MOST_BYTES

    def add(
        self,
        problem: Problem,
        workload: Workload,
        inputs: Mapping[str, Value],
        outputs: tuple[torch.Tensor, ...],
    ) -> None:
        """Keeps the inputs of a call, which nobody may change, and a copy of its outputs."""
        call = _Call(problem, workload, inputs, tuple(output.clone() for output in outputs))
        tensors = [v for v in inputs.values() if isinstance(v, torch.Tensor)]
        self._bytes += sum(t.nbytes for t in (*tensors, *call.outputs))
        self._calls.append(call)

    def check(self) -> str:
        """Checks and forgets all calls. Describes the first wrong one; empty if all are right."""
        calls, self._calls, self._bytes = self._calls, [], 0
        for call in calls:
            expected = answer(call.problem, call.inputs, call.outputs[0].device)
            check = compare(call.problem, expected, call.outputs)
            if not check.passed:
                return f"wrong values in a timed call on {call.workload}: {check.message}"
        return ""
