"""What the evaluator asks of a device: open a session for a candidate, load it, call it.

A session is one candidate in one worker, thrown away afterwards. Failures of the candidate are
values (`Failed`); failures of ours raise `InfraError`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import torch

from kernel_gym.hardware import DeviceSpec
from kernel_gym.records import Clock, KernelFacts
from kernel_gym.tasks.problem import Scale, Value


class InfraError(RuntimeError):
    """Something of ours failed: retried, then reported as `infra`, never paid as a zero."""


class DeviceLostError(InfraError):
    """The device was lost, by whom is not known: ours, unless it happens again."""


class MemoryUsedUpError(InfraError):
    """The device has no memory left for work of ours, be it by the candidate or by others."""


class Turn(StrEnum):
    """How a device is held during some steps of an evaluation."""

    FREE = "free"
    """Not at all: the work is on the host."""
    ALONE = "alone"
    """With nobody else on it: values are checked, and it is timed."""


class FailureKind(StrEnum):
    """How a candidate failed in its worker."""

    COMPILE = "compile"
    RUNTIME = "runtime"
    TIMEOUT = "timeout"


class Audit(StrEnum):
    """How closely a call is watched for races, lost writes and undefined reads."""

    OFF = "off"
    DRAWN = "drawn"
    """Each launch or not, by a draw of its own that the candidate cannot foresee."""
    AGAIN = "again"
    """As `DRAWN`, and the call is the last one once more: its time is to be the same."""
    ON = "on"
    """Each launch."""
    REVERSED = "reversed"
    """And with the waves of each workgroup in the other order: its time is not comparable."""


@dataclass(frozen=True)
class Failed:
    """A failure of the candidate: one line, and the text behind it."""

    kind: FailureKind
    message: str
    detail: str = ""


@dataclass(frozen=True)
class OutputTensor:
    """One value that the candidate returned, as the judge found it on the device.

    `tensor` is a copy, of the type and shape that the task states. It is None when something else
    came back: `problem` tells what was found and what was expected.
    """

    tensor: torch.Tensor | None
    problem: str = ""


@dataclass(frozen=True)
class Call:
    """One call of the candidate: outputs, and what the device recorded of it."""

    outputs: tuple[OutputTensor, ...]
    seconds: float
    launches: int
    modified_inputs: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    retuned: bool = False
    """Kernels were tried out during this call: its time is not that of the next one."""
    kernels: tuple[KernelFacts, ...] = ()
    """What it launched, the longest first; empty where the device does not look."""
    launch_seconds: float | None = None
    """Part of `seconds` that is the cost of launching; None where that is not known."""
    codes: frozenset[str] = frozenset()
    """The machine codes that it launched, by digest, where the device knows them."""
    audited: frozenset[str] = frozenset()
    """Those of them of which a launch was audited."""


SketchedCall = tuple[Mapping[str, int], Mapping[str, Value]]
"""Dimensions of a call and its inputs, of which only shapes and types matter."""


class Session(Protocol):
    """One candidate in one worker."""

    def load(self, source: str, language: str | None = None) -> Failed | None:
        """Builds and loads the candidate; the language is its task's unless another is named."""

    def call(
        self,
        inputs: Mapping[str, Value],
        dims: Mapping[str, int],
        noop: bool = False,
        audit: Audit = Audit.OFF,
    ) -> Call | Failed:
        """Calls it once with copies of the inputs; with `noop` its kernels do nothing.

        `audit` asks for faults that values need not show; a device that cannot look ignores it.
        """

    def compile(self, calls: Sequence[SketchedCall]) -> Failed | None:
        """Compiles ahead what the calls need, where that saves the device's time."""

    def facts(self) -> tuple[KernelFacts, ...]:
        """What the compiler made of its kernels."""

    def close(self) -> None:
        """Ends the worker and everything it started."""


class Device(Protocol):
    """Where kernels run."""

    name: str
    spec: DeviceSpec
    clock: Clock
    scale: Scale
    where: torch.device
    """Where the judge draws inputs and computes expected values."""

    @property
    def languages(self) -> Sequence[str]:
        """What candidates can be written in here: "triton", "hip"."""

    @property
    def facts(self) -> str:
        """One paragraph for prompts."""

    def versions(self) -> dict[str, str]:
        """Versions of everything that decides a result."""

    def turn(self, kind: Turn) -> AbstractContextManager[None]:
        """Held during some steps: waits until the device is free for them."""

    def usable(self, task: Any) -> bool:
        """Whether it could be used for a task now, by a source of ours."""

    def open(self, task: Any, trusted: bool = False, seed: int = 0) -> Session:
        """A session for candidates of a task; `trusted` ones (baselines) share a cache.

        `seed` is for whatever the device draws while it times; the worker must not learn it.
        """

    def close(self) -> None:
        """Gives back what the device holds."""
