"""Timed calls whose outputs are checked after all timing is done (rule 17).

The oracle takes longer than the call. If it ran immediately, the judge would work between two
blocks that are compared. So the inputs and outputs are kept when the block ends, and checked later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from kernel_gym.judge.expected import Expected, answer, compare
from kernel_gym.tasks.problem import Problem, Value
from kernel_gym.tasks.sampling import CPU
from kernel_gym.tasks.workload import Workload

MAX_BYTES = 3 << 30
"""If more bytes are kept, the calls are checked at once."""


@dataclass(frozen=True)
class _Call:
    problem: Problem
    workload: Workload
    inputs: Mapping[str, Value]
    outputs: tuple[torch.Tensor, ...]
    where: torch.device
    """Where the inputs were drawn: the reference worker takes them from there."""


Answer = Callable[[Workload, Mapping[str, Value]], Expected]


class DeferredChecks:
    """Calls that wait for their check.

    Args:
        known: Answers a call of an imported task, in its reference worker. That worker is timed
            meanwhile, so no call is checked before all timing is done. By default the problem's
            oracle answers.
    """

    def __init__(self, known: Answer | None = None) -> None:
        self._known = known
        self._calls: list[_Call] = []
        self._bytes = 0
        self.wrong: Workload | None = None
        """The workload of the wrong call that was found."""

    @property
    def full(self) -> bool:
        """Whether the calls should be checked before another one is added."""
        return self._known is None and self._bytes > MAX_BYTES

    def add(
        self,
        problem: Problem,
        workload: Workload,
        inputs: Mapping[str, Value],
        outputs: tuple[torch.Tensor, ...],
    ) -> None:
        """Keeps the inputs of a call, which nobody may change, and a copy of its outputs."""
        copies = tuple(output.clone() for output in outputs)
        where = next((v.device for v in inputs.values() if isinstance(v, torch.Tensor)), CPU)
        if self._known is not None and self._bytes > MAX_BYTES:  # the host has room for more
            inputs, copies = _moved(inputs, CPU), tuple(output.to(CPU) for output in outputs)
        call = _Call(problem, workload, inputs, copies, where)
        tensors = [v for v in inputs.values() if isinstance(v, torch.Tensor)]
        self._bytes += sum(t.nbytes for t in (*tensors, *call.outputs))
        self._calls.append(call)

    def check(self) -> str:
        """Checks and forgets all calls. Describes the first wrong one; empty if all are right."""
        calls, self._calls, self._bytes = self._calls, [], 0
        for call in calls:
            expected = self._answered(call)
            where = expected.oracle[0].device if expected.oracle else CPU
            outputs = tuple(output.to(where) for output in call.outputs)
            check = compare(call.problem, expected, outputs)
            if not check.passed:
                self.wrong = call.workload
                return f"wrong values in a timed call on {call.workload}: {check.message}"
        return ""

    def _answered(self, call: _Call) -> Expected:
        if self._known is None:
            return answer(call.problem, call.inputs, call.outputs[0].device)
        return self._known(call.workload, _moved(call.inputs, call.where))


def _moved(inputs: Mapping[str, Value], where: torch.device) -> dict[str, Value]:
    return {
        name: value.to(where) if isinstance(value, torch.Tensor) else value
        for name, value in inputs.items()
    }
