"""What the answer should be: inputs, fp64 oracle and yardstick of one workload and data seed.

Never leaves the judge. Cached, because in deterministic mode and over the turns of an episode the
same workload and seed come again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from kernel_gym.judge.correctness import Comparison, compare_close, compare_exact, compare_mask
from kernel_gym.tasks.problem import Check, Problem, Value
from kernel_gym.tasks.sampling import CPU, make_inputs
from kernel_gym.tasks.workload import Workload


@dataclass(frozen=True)
class Expected:
    """One workload with data: what goes in, what must come out."""

    inputs: Mapping[str, Value]
    oracle: tuple[torch.Tensor, ...]
    reference: tuple[torch.Tensor, ...]

    @property
    def nbytes(self) -> int:
        """Bytes held, for the cache."""
        tensors = [v for v in self.inputs.values() if isinstance(v, torch.Tensor)]
        return sum(t.nbytes for t in (*tensors, *self.oracle, *self.reference))


def expect(problem: Problem, workload: Workload, seed: int, where: torch.device = CPU) -> Expected:
    """Draws the inputs and computes the oracle (fp64) and the reference (the task's dtype)."""
    return answer(problem, make_inputs(problem, workload, seed, where), where)


def answer(problem: Problem, inputs: Mapping[str, Value], where: torch.device = CPU) -> Expected:
    """The oracle's answer and the reference's on given inputs."""
    with torch.no_grad(), where:
        # Library kernels may want aligned operands, whatever the layout that candidates get.
        plain = {
            name: value.clone(memory_format=torch.contiguous_format)
            if isinstance(value, torch.Tensor)
            else value
            for name, value in inputs.items()
        }
        return Expected(inputs, problem.oracle(**inputs), problem.reference(**plain))


def compare(problem: Problem, expected: Expected, found: tuple[torch.Tensor, ...]) -> Comparison:
    """The verdict on all outputs of a call: the first that is wrong, else the worst that is not."""
    worst = Comparison(True, 0.0)
    rows = zip(problem.outputs, found, expected.oracle, expected.reference, strict=True)
    for output, tensor, oracle, reference in rows:
        if output.check is Check.CLOSE:
            verdict = compare_close(output.name, tensor, oracle, reference)
        elif output.check is Check.EXACT:
            verdict = compare_exact(output.name, tensor, oracle)
        else:
            wrong = problem.mismatches(output.name, tensor, expected.inputs, oracle)
            verdict = compare_mask(output.name, wrong, tensor, oracle)
        if not verdict.passed:
            return verdict
        worst = max(worst, verdict, key=lambda c: c.worst)
    return worst


class ExpectedCache:
    """The most recent expectations, up to a number of bytes. Thread-safe."""

    def __init__(self, capacity: int = 1 << 30) -> None:
        self._capacity = capacity
        self._held = 0
        self._entries: OrderedDict[tuple[str, str, int, str], Expected] = OrderedDict()
        self._lock = threading.Lock()

    def get(
        self, problem: Problem, workload: Workload, seed: int, where: torch.device = CPU
    ) -> Expected:
        """The expectation, computed on a miss. A GPU has the time to compute, but no memory."""
        if where.type != "cpu":
            return expect(problem, workload, seed, where)
        key = (problem.name, workload.key, seed, str(where))
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key]
        found = expect(problem, workload, seed, where)
        with self._lock:
            if key not in self._entries:
                self._entries[key] = found
                self._held += found.nbytes
            while self._held > self._capacity and len(self._entries) > 1:
                _, dropped = self._entries.popitem(last=False)
                self._held -= dropped.nbytes
        return found
