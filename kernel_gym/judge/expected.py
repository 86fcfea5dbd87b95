"""Inputs, fp64 oracle and yardstick of one workload and data seed.

These values never leave the judge. They are cached, because the same workload and seed are used
again in deterministic mode and over the turns of an episode.
"""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

import torch

from kernel_gym.judge.correctness import ValueCheck, compare_close, compare_exact, compare_mask
from kernel_gym.tasks.content import identity_of
from kernel_gym.tasks.problem import Check, Output, Problem, Value
from kernel_gym.tasks.sampling import CPU, made_on, make_inputs
from kernel_gym.tasks.workload import Workload


@dataclass(frozen=True)
class Expected:
    """One workload with data: inputs, oracle, and an honest answer in the task's dtype."""

    inputs: Mapping[str, Value]
    oracle: tuple[torch.Tensor, ...]
    reference: tuple[torch.Tensor, ...]
    outputs: tuple[Output, ...]
    """The values that the call returns."""
    baseline_seconds: float | None = None
    """The time of the task's baseline on these inputs, if it made the reference."""
    operator_seconds: float = 0.0
    """The part of it that operators of PyTorch took, where the device reports times."""

    @property
    def nbytes(self) -> int:
        """The size of all tensors, for the cache."""
        tensors = [v for v in self.inputs.values() if isinstance(v, torch.Tensor)]
        return sum(t.nbytes for t in (*tensors, *self.oracle, *self.reference))


def expect(problem: Problem, workload: Workload, seed: int, where: torch.device = CPU) -> Expected:
    """Draws the inputs and computes the oracle (fp64) and the reference (the task's dtype)."""
    return answer(problem, make_inputs(problem, workload, seed, where), where)


def answer(problem: Problem, inputs: Mapping[str, Value], where: torch.device = CPU) -> Expected:
    """Computes the oracle and the reference on given inputs."""
    with torch.no_grad(), made_on(where):
        # Library kernels may need aligned operands, unlike the layouts that candidates get.
        plain = {
            name: value.clone(memory_format=torch.contiguous_format)
            if isinstance(value, torch.Tensor)
            else value
            for name, value in inputs.items()
        }
        return Expected(
            inputs, problem.oracle(**inputs), problem.yardstick(**plain), problem.outputs
        )


def compare(problem: Problem, expected: Expected, outputs: tuple[torch.Tensor, ...]) -> ValueCheck:
    """Checks all outputs of a call. Returns the first failed check, else the worst passed one."""
    worst = ValueCheck(True, 0.0)
    rows = zip(expected.outputs, outputs, expected.oracle, expected.reference, strict=True)
    for output, tensor, oracle, reference in rows:
        if output.check is Check.CLOSE:
            check = compare_close(output.name, tensor, oracle, reference)
        elif output.check is Check.EXACT:
            check = compare_exact(output.name, tensor, oracle)
        else:
            wrong = problem.mismatches(output.name, tensor, expected.inputs, oracle)
            check = compare_mask(output.name, wrong, tensor, oracle)
        if not check.passed:
            return check
        worst = max(worst, check, key=lambda c: c.worst)
    return worst


class ExpectedCache:
    """Caches the most recently used values, up to a number of bytes. Thread-safe.

    Evaluations of a group of replies have the same values; those of another task or seed do not.
    """

    def __init__(self, capacity: int = 256 << 20) -> None:
        self._capacity = capacity
        self._held = 0
        self._entries: OrderedDict[Hashable, Expected] = OrderedDict()
        self._making: dict[Hashable, threading.Event] = {}
        self._lock = threading.Lock()

    def get(
        self,
        problem: Problem,
        workload: Workload,
        seed: int,
        where: torch.device = CPU,
        make: Callable[[], Expected] | None = None,
    ) -> Expected:
        """Returns cached values, or computes them. A GPU is fast but short of memory: no cache.

        Args:
            problem: The problem.
            workload: The workload.
            seed: The seed of the data.
            where: The torch device to compute on.
            make: Computes the values; by default `expect`.
        """
        make = make or functools.partial(expect, problem, workload, seed, where)
        if where.type != "cpu":
            return make()
        key = (identity_of(problem), workload.key, seed, str(where))
        while (cached := self._cached_or_mine(key)) is None:
            pass
        if isinstance(cached, Expected):
            return cached
        try:
            expected = make()
            self._keep(key, expected)
        finally:
            self._making.pop(key).set()
        return expected

    def _cached_or_mine(self, key: Hashable) -> Expected | bool | None:
        """Returns the cached values, True if the caller must compute them, or None: ask again.

        None is returned after another thread has computed them, or failed to.
        """
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key]
            made = self._making.get(key)
            if made is None:
                self._making[key] = threading.Event()
                return True
        made.wait()
        return None

    def _keep(self, key: Hashable, expected: Expected) -> None:
        with self._lock:
            self._entries[key] = expected
            self._held += expected.nbytes
            while self._held > self._capacity and len(self._entries) > 1:
                _, dropped = self._entries.popitem(last=False)
                self._held -= dropped.nbytes
