"""The steps of one measurement, in the process that measures.

The text of a traced problem is ours: it only calls operators of PyTorch. No code of a suite runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from kernel_gym.imports.bench.compiled.alternation import (
    BlockClock,
    GpuClock,
    HostClock,
    ModelledClock,
    alternate,
)
from kernel_gym.imports.traced.loading import load_text
from kernel_gym.judge.expected import Expected, compare, expect
from kernel_gym.programs.simulation import simulation
from kernel_gym.tasks.problem import Problem, Scale
from kernel_gym.tasks.sampling import make_inputs, train_workloads
from kernel_gym.tasks.workload import Workload

SEED = 0
SETS, SMALL_SETS = 4, 16
"""Sets of inputs, and how many there are of small ones."""
SMALL_BYTES, MAX_BYTES = 8 << 20, 1 << 30
"""A set with fewer bytes is small. The sets beyond the first two take at most so many bytes."""
MAX_MESSAGE_CHARACTERS = 240


class StepFailed(Exception):
    """A step has no result. The message gives the reason in one line."""


class StepOutOfMemory(StepFailed):
    """A step needs more memory than is free."""


class Measurement:
    """Compares the reference of one problem with its compiled form on one device.

    Args:
        name: The name of the problem, for messages.
        text: The text of its `problem.py`.
        scale: The scale of its workloads.
        device: The torch device.
        flush: Bytes that are written to make the caches of a GPU cold.
    """

    def __init__(self, name: str, text: str, scale: str, device: str, flush: int) -> None:
        self._problem: Problem = load_text(name, text)
        self._where = torch.device(device)
        if self._where.type == "cuda":
            torch.cuda.set_device(self._where)
        self.workloads = train_workloads(self._problem, Scale(scale))
        self._eager = _reference(self._problem)
        self._compiled: Callable[..., Any] | None = None
        self._clock = _clock(self._where, flush)

    def check(self, number: int) -> str:
        """Checks the reference against the oracle on one workload.

        Returns:
            Why the judge would refuse the reference; empty if it passes.

        Raises:
            StepOutOfMemory: There is not enough memory for it.
        """
        workload = self.workloads[number]
        with self._step("the check"):
            expected = expect(self._problem, workload, SEED, self._where)
            if any(torch.isnan(out).any() for out in expected.oracle if out.is_floating_point()):
                return f"on {workload}: the oracle has NaN"
            return _refusal(self._problem, expected, expected.reference, workload)

    def compile(self, number: int) -> str:
        """Compiles the reference for one workload, with its sizes as constants, and calls it.

        Returns:
            Why the judge would refuse the compiled answer; empty if it passes.

        Raises:
            StepFailed: Inductor cannot compile it.
            StepOutOfMemory: There is not enough memory for it.
        """
        workload = self.workloads[number]
        torch._dynamo.reset()
        self._compiled = torch.compile(self._eager, dynamic=False, fullgraph=True)
        with self._step("torch.compile"):
            expected = expect(self._problem, workload, SEED, self._where)
            outputs = self._compiled(*expected.inputs.values())
            return _refusal(self._problem, expected, tuple(outputs), workload)

    def time(self, number: int) -> tuple[float, float]:
        """Returns the seconds of one call on a workload: eager, and by the latest compiled form.

        Raises:
            StepFailed: A call fails.
            StepOutOfMemory: There is not enough memory for two sets of inputs.
        """
        assert self._compiled is not None, "compile first"
        with self._step("a timed call"):
            sets = list(self._sets(self.workloads[number]))
            if isinstance(self._clock, ModelledClock):
                eager, compiled = (
                    self._clock.block(side, sets[:1])[0] for side in (self._eager, self._compiled)
                )
                return eager, compiled
            for side in (self._eager, self._compiled):
                for values in sets[:2]:
                    side(*values)
            return alternate((self._eager, self._compiled), sets, self._clock)

    def _sets(self, workload: Workload) -> Iterator[list[torch.Tensor | int | float]]:
        wanted, taken, number = SETS, 0, 0
        while number < 2 or (number < wanted and taken < MAX_BYTES):
            values = [*make_inputs(self._problem, workload, SEED + number, self._where).values()]
            size = sum(value.nbytes for value in values if isinstance(value, torch.Tensor))
            wanted = SMALL_SETS if size < SMALL_BYTES else SETS
            taken, number = taken + size, number + 1
            yield values

    @contextmanager
    def _step(self, name: str) -> Iterator[None]:
        try:
            with torch.no_grad():
                yield
        except torch.OutOfMemoryError as error:
            raise StepOutOfMemory(f"{name} needs more memory than is free") from error
        except Exception as error:  # Inductor raises errors of many kinds
            raise StepFailed(f"{name}: {_line(error)}") from error
        finally:
            if self._where.type == "cuda":
                torch.cuda.empty_cache()


def _clock(where: torch.device, flush: int) -> BlockClock:
    simulated = simulation()
    if simulated is not None:
        return ModelledClock(lambda: simulated.seconds)
    return HostClock() if where.type == "cpu" else GpuClock(flush, where)


def _reference(problem: Problem) -> Callable[..., object]:
    """Returns the reference as a function of tensors."""
    names: dict[str, object] = {}
    source = problem.reference_source()
    exec(compile(source, f"<reference {problem.name}>", "exec", dont_inherit=True), names)
    function = names[problem.entry]
    assert callable(function)
    return function


def _refusal(
    problem: Problem, expected: Expected, found: tuple[torch.Tensor, ...], workload: Workload
) -> str:
    verdict = compare(problem, expected, found)
    return "" if verdict.passed else f"on {workload}: {verdict.message}"[:MAX_MESSAGE_CHARACTERS]


def _line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:MAX_MESSAGE_CHARACTERS]
