"""The interface of a device: what the judge calls, and the values that come back.

A `Device` opens a `Session` for a candidate: one source in one worker, thrown away afterwards. A
device whose times are measured in pairs offers a `TimedSession` as well. A failure of the candidate
is a value (`Failed`). A failure of the machine raises `InfraError`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

import torch

from kernel_gym.devices.audit import Audit
from kernel_gym.devices.description import DeviceDescription, TimingMethod
from kernel_gym.records import KernelFacts
from kernel_gym.sandbox.spawn import Child
from kernel_gym.tasks.problem import Value
from kernel_gym.tasks.task import Task

__all__ = [
    "Audit",
    "BrokenTaskError",
    "Call",
    "Device",
    "DeviceDescription",
    "DeviceLostError",
    "Exclusivity",
    "Failed",
    "FailureKind",
    "InfraError",
    "MemoryUsedUpError",
    "NotOfferedError",
    "OutputTensor",
    "Session",
    "SharedMemory",
    "SketchedCall",
    "TimedCall",
    "TimedSession",
    "TimingMethod",
    "WorkloadTooLargeError",
]


class InfraError(RuntimeError):
    """The machine failed. The evaluation is retried, then recorded as `infra` and masked."""


class DeviceLostError(InfraError):
    """The device was lost and the cause is unknown. If it happens again, the candidate lost it."""


class MemoryUsedUpError(InfraError):
    """The judge or a baseline got no memory on the device. Anybody may hold it."""


class BrokenTaskError(InfraError):
    """The task's own reference or baseline failed, so that no candidate can be judged."""


class WorkloadTooLargeError(InfraError):
    """A workload does not fit the device's memory."""


class NotOfferedError(InfraError):
    """The device does not do what it was asked for, so that a candidate is not judged there."""


class Exclusivity(StrEnum):
    """How an evaluation holds the device during some of its steps."""

    FREE = "free"
    """Not at all: the steps run on the host."""
    SHARED = "shared"
    """Beside others that are not timed either: the code of a suite runs, or kernels compile."""
    ALONE = "alone"
    """Nobody else uses the device: values are checked and kernels are timed."""


class FailureKind(StrEnum):
    """How a candidate failed in its worker."""

    COMPILE = "compile"
    RUNTIME = "runtime"
    TIMEOUT = "timeout"


@dataclass(frozen=True)
class Failed:
    """A failure of the candidate: one line, and the details behind it."""

    kind: FailureKind
    message: str
    detail: str = ""


@dataclass(frozen=True)
class OutputTensor:
    """One value that the candidate returned, as the judge read it from the device.

    `tensor` is a copy with the dtype and shape that the task states. It is None if the candidate
    returned something else: then `problem` says what was found and what was expected.
    """

    tensor: torch.Tensor | None
    problem: str = ""


@dataclass(frozen=True)
class Call:
    """One call of the candidate: its outputs, and what the device recorded."""

    outputs: tuple[OutputTensor, ...]
    seconds: float
    launches: int
    modified_inputs: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    retuned: bool = False
    """Whether kernels were autotuned during this call: the next call takes another time."""
    kernels: tuple[KernelFacts, ...] = ()
    """The kernels that were launched, the longest first. Empty if the device does not record
    them."""
    launch_seconds: float | None = None
    """The part of `seconds` that is launch overhead, or None if it is not known."""
    time_factor: float | None = None
    """The factor either way of `seconds`, where a model has an interval of it."""
    ratio_factor: float | None = None
    """The same of a ratio of two times of kernels for one problem."""
    uncalibrated: str = ""
    """Why a modelled time has no interval."""
    codes: frozenset[str] = frozenset()
    """Digests of the machine codes that were launched, where the device knows them."""
    audited: frozenset[str] = frozenset()
    """The digests among `codes` with at least one audited launch."""
    operators: frozenset[str] = frozenset()
    """Operators of PyTorch that compute and that ran in this call, by name, such as `aten::sum`. A
    worker on a GPU reports them itself, so only those of a suite's own code are used."""
    operator_seconds: float = 0.0
    """The part of `seconds` that these operators took, where the device reports times."""
    compiler_fault: str = ""
    """A race that the compiler has made and the candidate could not: the fault, in words."""
    other_outputs: tuple[OutputTensor, ...] = ()
    """The outputs that the same launches leave in another order of their workgroups and waves.
    Empty if they are known to be the same as `outputs`, or if the device cannot tell."""
    plan: str = ""
    """The digest of the launch plan that was executed; empty where there was none."""
    plan_from: str = ""
    """The source of the plan: `shapes`, or `values` that host code has read."""


SketchedCall = tuple[Mapping[str, int], Mapping[str, Value]]
"""Dimensions and inputs of a call, of which only shapes and dtypes matter."""


@dataclass(frozen=True)
class TimedCall:
    """Where a timed call has its inputs and leaves its results."""

    inputs: int
    """The place that `SharedMemory.stage` has returned."""
    results: tuple[int, ...] = ()
    """The offset of each output in memory of the host. Empty if they are not wanted."""


class SharedMemory(Protocol):
    """Memory of the host that the judge writes inputs to, and reads outputs from."""

    @property
    def size(self) -> int:
        """Bytes."""

    def write(self, offset: int, data: torch.Tensor) -> int:
        """Copies bytes, uint8 [size], to an offset; returns the offset behind them."""

    def stage(self, offset: int, pieces: Sequence[torch.Tensor]) -> int:
        """Writes the inputs of one timed call, and waits until they are there.

        Args:
            offset: Where they begin if they go through memory of the host.
            pieces: Their bytes, uint8 [size] each.

        Returns:
            Where they begin, for `TimedCall`.
        """

    def read(self, offset: int, size: int) -> torch.Tensor:
        """Returns a copy of some bytes on the judge's device, uint8 [size]."""

    def settle(self) -> None:
        """Waits until all copies of the judge have ended."""


class Session(Protocol):
    """One candidate or baseline in one worker."""

    @property
    def confinement(self) -> Mapping[str, object]:
        """The barriers around the worker: `active` ones, and `missing` ones with reasons."""

    @property
    def timed(self) -> TimedSession | None:
        """The session as one that can be timed in blocks; None if its device reports times."""

    def load(self, source: str, language: str | None = None) -> Failed | None:
        """Builds and loads a source; the language is the task's unless another one is named."""

    def sample_from(self, seed: int) -> None:
        """Decides which workgroups a timing model records in the next calls; else no effect.

        A candidate must not know the seed: it could do less work in the other workgroups.
        """

    def call(
        self,
        inputs: Mapping[str, Value],
        dims: Mapping[str, int],
        noop: bool = False,
        audit: Audit = Audit.OFF,
    ) -> Call | Failed:
        """Calls the candidate once with copies of the inputs.

        Args:
            inputs: The arguments, by name.
            dims: The dimensions of the workload.
            noop: Kernels do nothing.
            audit: Faults to look for beside wrong values. A device without audits ignores it.
        """

    def compile(self, calls: Sequence[SketchedCall]) -> Failed | None:
        """Compiles what the calls need, if that saves time on the device later."""

    def second_opinion(self) -> Session | None:
        """Opens a new session for the same task, with a compiler that leaves out optional passes.

        Returns:
            The session, which the caller closes; None where there is no such compiler.
        """

    def facts(self) -> tuple[KernelFacts, ...]:
        """Returns what the compiler reported about the kernels."""

    def close(self) -> None:
        """Ends the worker and everything it started."""


class TimedSession(Session, Protocol):
    """A session whose calls are timed one by one, each with inputs of its own and cold caches."""

    @property
    def memory(self) -> SharedMemory:
        """The memory for inputs and outputs. Both sides of a comparison have the same."""

    def select(self, inputs: Mapping[str, Value], dims: Mapping[str, int]) -> object | Failed:
        """Prepares calls of one form, of which values do not matter."""

    def repeat(self, inputs: Mapping[str, Value], dims: Mapping[str, int]) -> Failed | None:
        """Records a call of one form again, a drawn number of times: its plan must stay the same.

        Values do not matter. It needs no GPU, so nobody waits for the host code.
        """

    def time_calls(
        self, order: Sequence[TimedSession], call: TimedCall, graph: bool
    ) -> list[float] | Failed | None:
        """Times a call of each of some sessions, of the forms that they have selected last.

        All run in this session's launcher, one after the other, on the same inputs. Their code and
        buffers get other places before.

        Args:
            order: This session, and those that `beside` has returned for it.
            call: The inputs of all, and the results of this session.
            graph: Whether each call is the replay of a graph.

        Returns:
            The seconds of each, by events of the device that no source can reach. None if a
            reference cannot be captured as a graph.
        """

    def renew(self) -> None:
        """Takes another launcher: they differ in what a launch takes, as long as they live."""

    def beside(self, other: TimedSession) -> TimedSession | None:
        """Returns the same source in the launcher of another session, in turn with that one.

        Two launchers differ in what a launch takes. The session needs not be closed. It is None if
        the source is no plan.
        """


class Device(Protocol):
    """A device that the judge has opened."""

    @property
    def description(self) -> DeviceDescription:
        """The facts that are known without opening the device."""

    @property
    def noise_file(self) -> Path | None:
        """Where evaluators of this device share the last measurement of its noise floor.

        None if the device reports times, which have no noise.
        """

    def versions(self) -> dict[str, str]:
        """Returns the versions of everything that decides a result."""

    def held(self, exclusivity: Exclusivity) -> AbstractContextManager[None]:
        """Holds the device during some steps; waits until it is free for them."""

    def usable(self, task: Task) -> bool:
        """Whether a trusted source for a task could use the device now."""

    def open(
        self,
        task: Task,
        trusted: bool = False,
        seed: int = 0,
        resident: bool = False,
        launch_instructions: int | None = None,
    ) -> Session:
        """Opens a session for sources that solve a task.

        Args:
            task: What the sources solve.
            trusted: Whether the source is the project's own. Baselines share a compiler cache.
            seed: For random choices of the device while it times. The worker must not learn it.
            resident: Whether the worker stays for many evaluations, as a baseline's does. The code
                of an imported suite is resident and not trusted.
            launch_instructions: Wave instructions after which a device that counts them stops a
                launch; None for its own limit.

        Raises:
            InfraError: A worker could not be started.
        """

    def upstream(self, output: int, seconds: float) -> AbstractContextManager[Child]:
        """Starts a confined process with the device for a program on files of a suite.

        Args:
            output: A descriptor that takes what it prints.
            seconds: Seconds of the wall that it may take.

        Raises:
            NotOfferedError: The device runs no such programs.
            InfraError: The process could not be started.
        """

    def free_unused_memory(self) -> None:
        """Frees device memory that this process holds and does not use."""

    def synchronize(self) -> None:
        """Waits until this process has no work left on the device."""

    def close(self) -> None:
        """Frees everything that the device holds."""
