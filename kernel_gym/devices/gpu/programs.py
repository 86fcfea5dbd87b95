"""Programs of a session: plans that a recorder makes, or trusted code for PyTorch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import Any, Protocol

import torch

from kernel_gym.devices.answers import StatedOutput, stated_outputs
from kernel_gym.devices.base import Failed, FailureKind, MemoryUsedUpError
from kernel_gym.devices.candidate_loading import CandidateLoading
from kernel_gym.devices.gpu.host_memory import HostMemory
from kernel_gym.devices.gpu.launchers import LauncherSlot
from kernel_gym.devices.gpu.recording import CALL_SECONDS, LOAD_SECONDS, GpuRecorder
from kernel_gym.devices.gpu.strided_copies import StridedCopies
from kernel_gym.devices.placement import storage_bytes
from kernel_gym.devices.plan_recordings import (
    PlannedCall,
    PlanRecordings,
    TimeSteps,
    form_key,
    sketch,
)
from kernel_gym.launcher.process import PlanFailedError
from kernel_gym.plans.types import (
    BufferRole,
    BufferView,
    LaunchPlan,
    PlanBuffer,
    WrongOutput,
)
from kernel_gym.records import KernelFacts
from kernel_gym.tasks.problem import Value
from kernel_gym.tasks.task import Task

TUNING_CALLS = 5
"""Host code that tunes itself receives the median of so many calls."""
_OUT_OF_MEMORY = "error 2,"  # CUDA_ERROR_OUT_OF_MEMORY and hipErrorOutOfMemory
Exclusive = Callable[[], AbstractContextManager[None]]
"""Holds the GPU alone within a context."""


@dataclass(frozen=True)
class LoadedCall:
    """A call of one form that a launcher has loaded."""

    outputs: tuple[BufferView | WrongOutput, ...]
    """Outputs that the call returns."""
    aliases: Mapping[int, int]
    """The number of an input, by the number of an output that lies in it."""
    launches: int
    number: int
    """The launcher's number of it."""
    refused: tuple[str, ...] = ()
    plan: str = ""
    """The digest of its plan; empty if PyTorch runs it."""
    facts: tuple[KernelFacts, ...] = ()

    @property
    def result_sizes(self) -> list[int]:
        """Bytes of each output that is a tensor."""
        return [view.extent for view in self.outputs if isinstance(view, BufferView)]


class Program(Protocol):
    """A program that a session runs."""

    def load(self, source: str) -> Failed | None:
        """Builds and loads a source."""

    def compile(
        self, inputs: Mapping[str, Value], dims: Mapping[str, int], alone: Exclusive
    ) -> Failed | None:
        """Does on the host what a call of such a form needs."""

    def repeat(
        self, inputs: Mapping[str, Value], dims: Mapping[str, int], seed: int, alone: Exclusive
    ) -> Failed | None:
        """Records a call again, a number of times that the seed draws; its plan must stay."""

    def select(
        self, slot: LauncherSlot, inputs: Mapping[str, Value], dims: Mapping[str, int]
    ) -> LoadedCall | Failed:
        """Has a launcher load what a call of such a form does."""

    @property
    def is_plan(self) -> bool:
        """Whether its calls are plans, which any launcher executes."""

    def close(self) -> None:
        """Ends its process."""


class PlanProgram:
    """A candidate or our own kernel: a recorder, and the plans of the forms that were called.

    Args:
        task: What the source solves.
        recorder: Makes the plans.
        memory: For the inputs of calls that tune.
        slot: The launcher that times plans for host code that tunes itself.
        most_bytes: Bytes of the GPU that a plan may have.
        arch: The architecture of the GPU.
        copies: Makes launches of copies that a driver cannot do.
    """

    def __init__(
        self,
        task: Task,
        recorder: GpuRecorder,
        memory: HostMemory,
        slot: LauncherSlot,
        most_bytes: int,
        arch: str,
        copies: StridedCopies,
    ) -> None:
        self._task, self._recorder, self._memory = task, recorder, memory
        self._slot, self._most, self._copies = slot, most_bytes, copies
        self._arch = arch
        self._loaded: PlanRecordings | None = None

    def load(self, source: str) -> Failed | None:
        """Builds a source and loads it into the recorder."""
        recorder = self._recorder
        loading = CandidateLoading(
            self._task, source, recorder, self._arch, LOAD_SECONDS, recorder.budget, recorder.family
        )
        ask = partial(loading.ask, limit=CALL_SECONDS)
        self._loaded = PlanRecordings(self._task, ask, loading.returns)
        return loading.load()

    def compile(
        self, inputs: Mapping[str, Value], dims: Mapping[str, int], alone: Exclusive
    ) -> Failed | None:
        """Records the plan of a form. Only a failure of the compiler counts here."""
        plan = self._plan(inputs, dims, alone)
        if isinstance(plan, Failed) and plan.kind is FailureKind.COMPILE:
            return plan
        return None

    def repeat(
        self, inputs: Mapping[str, Value], dims: Mapping[str, int], seed: int, alone: Exclusive
    ) -> Failed | None:
        """Records a call again, a number of times that the seed draws; its plan must stay."""
        return self._recordings.repeat(inputs, dims, self._timer(inputs, alone), seed)

    def select(
        self, slot: LauncherSlot, inputs: Mapping[str, Value], dims: Mapping[str, int]
    ) -> LoadedCall | Failed:
        """Has a launcher load the plan of a form."""
        if self._recorder.budget is not None:
            self._recorder.budget.hold_gpu()
        planned = self._plan(inputs, dims, contextlib.nullcontext)
        if isinstance(planned, Failed):
            return planned
        loaded = self._load(slot, planned.plan)
        if isinstance(loaded, Failed):
            return loaded
        return replace(loaded, refused=planned.refused, plan=planned.sha256)

    @property
    def is_plan(self) -> bool:
        """Returns True."""
        return True

    @property
    def _recordings(self) -> PlanRecordings:
        assert self._loaded is not None, "no source is loaded"
        return self._loaded

    def close(self) -> None:
        """Ends the recorder."""
        self._recorder.close()

    def _plan(
        self, inputs: Mapping[str, Value], dims: Mapping[str, int], alone: Exclusive
    ) -> PlannedCall | Failed:
        return self._recordings.record(inputs, dims, self._timer(inputs, alone))

    def _timer(self, inputs: Mapping[str, Value], alone: Exclusive) -> TimeSteps:
        return lambda plan, first: self._time(inputs, alone, plan, first)

    def _time(
        self, inputs: Mapping[str, Value], alone: Exclusive, plan: LaunchPlan, first: int
    ) -> float | Failed:
        """Returns the seconds of the steps of a plan from a number on."""
        end = 0
        for value in inputs.values():
            if isinstance(value, torch.Tensor):
                end = self._memory.write(end, _drawn(value))
        self._memory.settle()
        before = 0.0
        with alone():
            if first:
                part = self._seconds(_until(plan, first))
                if isinstance(part, Failed):
                    return part
                before = part
            seconds = self._seconds(plan)
        return seconds if isinstance(seconds, Failed) else max(seconds - before, 1e-9)

    def _seconds(self, plan: LaunchPlan) -> float | Failed:
        loaded = self._load(self._slot, plan)
        if isinstance(loaded, Failed):
            return loaded
        try:
            calls = [[loaded.number, 0]] * TUNING_CALLS
            return median(self._slot.process().time(calls, graph=True))
        except PlanFailedError as error:
            return Failed(FailureKind.RUNTIME, str(error))

    def _load(self, slot: LauncherSlot, plan: LaunchPlan) -> LoadedCall | Failed:
        """Has a launcher load a plan.

        Raises:
            MemoryUsedUpError: Others hold the memory that it needs.
            InfraError: The launcher does not start.
        """
        size = sum(buffer.size for buffer in plan.buffers)
        if size > self._most:
            text = f"out of memory: a call has buffers of {size} bytes, expected {self._most}"
            return Failed(FailureKind.RUNTIME, f"{text} at most")
        try:
            number, kernels = slot.select(
                plan, lambda process, number: process.load(number, self._copies.launched(plan))
            )
        except PlanFailedError as error:
            if _OUT_OF_MEMORY in str(error):
                raise MemoryUsedUpError(str(error)) from error
            return Failed(FailureKind.RUNTIME, f"a kernel does not load: {error}")
        facts = _facts(kernels[: len(plan.kernels)])  # the judge's own kernels follow
        return LoadedCall(plan.outputs, _aliases(plan), plan.launches, number, facts=facts)


class ReferenceProgram:
    """Trusted code for PyTorch."""

    def __init__(self, task: Task) -> None:
        self._task, self._source = task, ""
        self._forms: dict[str, object] = {}

    def load(self, source: str) -> Failed | None:
        """Keeps the source: its launcher loads it for each form."""
        self._source = source
        return None

    def compile(
        self, inputs: Mapping[str, Value], dims: Mapping[str, int], alone: Exclusive
    ) -> Failed | None:
        """Does nothing."""
        return None

    def repeat(
        self, inputs: Mapping[str, Value], dims: Mapping[str, int], seed: int, alone: Exclusive
    ) -> Failed | None:
        """Does nothing: trusted code has no plan."""
        return None

    def select(
        self, slot: LauncherSlot, inputs: Mapping[str, Value], dims: Mapping[str, int]
    ) -> LoadedCall | Failed:
        """Has a launcher load the code for a form."""
        request = sketch(self._task, inputs, dims, returns=True)
        key = self._forms.setdefault(form_key(request), object())
        form = [_reference_argument(value) for value in inputs.values()]
        try:
            number, _ = slot.select(
                key,
                lambda process, number: process.load_reference(
                    number, self._source, self._task.entry, form
                ),
            )
        except PlanFailedError as error:
            return Failed(FailureKind.RUNTIME, str(error))
        views = tuple(map(_view, stated_outputs(self._task.problem, dims)))
        return LoadedCall(views, {}, 1, number)

    @property
    def is_plan(self) -> bool:
        """Returns False: it would need PyTorch in the launcher of candidates."""
        return False

    def close(self) -> None:
        """Has no process of its own."""


def _facts(kernels: list[dict[str, Any]]) -> tuple[KernelFacts, ...]:
    return tuple(
        KernelFacts(
            name=kernel["name"],
            arch="",
            error="",
            binary="",
            launches=0,
            vgprs=kernel["registers"],
            sgprs=0,
            lds_bytes=kernel["shared"],
            scratch_bytes=kernel["local"],
        )
        for kernel in kernels
    )


def _aliases(plan: LaunchPlan) -> dict[int, int]:
    buffers = plan.buffers
    return {
        number: buffers[view.buffer].number
        for number, view in enumerate(plan.outputs)
        if isinstance(view, BufferView) and buffers[view.buffer].role is BufferRole.INPUT
    }


def _until(plan: LaunchPlan, first: int) -> LaunchPlan:
    """Returns the steps of a plan up to a number."""
    buffers = tuple(_until_buffer(buffer, first) for buffer in plan.buffers)
    return replace(plan, buffers=buffers, steps=plan.steps[:first], outputs=())


def _until_buffer(buffer: PlanBuffer, first: int) -> PlanBuffer:
    end = None if buffer.end is None else min(buffer.end, first)
    return replace(buffer, begin=min(buffer.begin, first), end=end)


def _drawn(value: torch.Tensor) -> torch.Tensor:
    """Returns the bytes of an input for a call that is timed alone: its values do not matter."""
    if value.device.type != "meta":
        return storage_bytes(value)
    count = value.untyped_storage().nbytes() // value.itemsize
    if value.is_floating_point():
        return storage_bytes(torch.randn(count).to(value.dtype))
    return storage_bytes(torch.zeros(count, dtype=value.dtype))


def _reference_argument(value: Value) -> object:
    if not isinstance(value, torch.Tensor):
        return value
    return {
        "bytes": value.untyped_storage().nbytes(),
        "offset": int(value.storage_offset()),
        "shape": list(value.shape),
        "strides": list(value.stride()),
        "dtype": str(value.dtype).removeprefix("torch."),
    }


def _view(stated: StatedOutput) -> BufferView:
    strides: list[int] = []
    step = 1
    for size in reversed(stated.shape):
        strides.insert(0, step)
        step *= max(1, size)
    dtype = str(stated.dtype).removeprefix("torch.")
    return BufferView(0, 0, tuple(stated.shape), tuple(strides), dtype)
