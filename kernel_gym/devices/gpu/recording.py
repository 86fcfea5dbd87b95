"""The pipe to a recorder: a confined process without a device that makes plans of calls."""

from __future__ import annotations

import contextlib
import json
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch

from kernel_gym.devices.answers import (
    BadAnswerError,
    parse_failure,
    parse_refused,
    reading_an_answer,
)
from kernel_gym.devices.base import Failed, FailureKind, InfraError
from kernel_gym.devices.budget import HostBudget
from kernel_gym.devices.cache import cache_folder
from kernel_gym.devices.failures import describe_exit
from kernel_gym.inert import shown
from kernel_gym.plans.identity import difference
from kernel_gym.plans.parse import parse_plan
from kernel_gym.plans.reading import BadPlanError
from kernel_gym.plans.types import LaunchPlan
from kernel_gym.protocol import worker as messages
from kernel_gym.protocol.request import Request, encode
from kernel_gym.sandbox.channel import (
    ChannelClosed,
    ChannelError,
    ChannelMessage,
    ChannelTimeout,
)
from kernel_gym.sandbox.confine import WorkerLimits
from kernel_gym.sandbox.spawn import Child, Family, TemplateError, shared_template
from kernel_gym.tasks.problem import Value

START_SECONDS = 60.0
LOAD_SECONDS = 90.0
CALL_SECONDS = 45.0
"""Seconds to compile the kernels of one call, with all configurations of autotuned kernels."""
MAX_TIMED_PLANS = 256
"""Plans that one call may have timed, for host code that tunes itself."""
WORKER_LIMITS = WorkerLimits(memory=5 << 30, open_files=1024)
FAMILY_MEMORY = 6 << 30
"""Bytes of host memory that a recorder and its children may hold together."""

Measure = Callable[[LaunchPlan, int], "float | Failed"]
"""Returns the seconds of the steps of a plan from a number on."""


class GpuRecorder:
    """A recorder for one source.

    Args:
        options: What it needs to know of the GPU, see `kernel_gym.worker.recording.main`.
        trusted: Whether the source is the project's own: then it has a cache and no budget.

    Raises:
        InfraError: It could not be started.
    """

    def __init__(self, options: Mapping[str, Any], trusted: bool) -> None:
        self._budget = None if trusted else HostBudget()
        self._dead: Failed | None = None
        self.refused: tuple[str, ...] = ()
        """Operators of PyTorch that the last call was refused."""
        caches = [str(cache_folder("triton"))] if trusted else []
        family = None if trusted else Family(secrets.token_hex(8), FAMILY_MEMORY)
        limits = replace(WORKER_LIMITS, cpu_seconds=1 << 30) if trusted else WORKER_LIMITS
        variables = {"TRITON_CACHE_DIR": caches[0]} if trusted else {}
        try:
            self._child: Child = shared_template().fork(
                *("recorder", [], dict(options), limits, variables, trusted, caches, family),
                buffers=2,
            )
        except TemplateError as error:
            raise InfraError(f"a recorder could not be started: {error}") from error
        self._confinement: dict[str, Any] | None = None

    @property
    def confinement(self) -> dict[str, Any]:
        """The barriers around the process.

        Raises:
            InfraError: It ended before it listened.
        """
        if self._confinement is None:
            try:
                self._confinement = self._child.channel.recv(START_SECONDS).header["confinement"]
            except ChannelError as error:
                self.close()
                raise InfraError(f"a recorder could not be started: {error}") from error
        return self._confinement

    def load(self, request: messages.LoadOnSimulator) -> Failed | None:
        """Loads a source."""
        answer = self._exchange(request, LOAD_SECONDS)
        return answer if isinstance(answer, Failed) else None

    def record(self, request: messages.RecordCall, measure: Measure) -> LaunchPlan | Failed:
        """Records a call twice and returns its plan.

        A recording in which host code has tuned itself does not count.

        Args:
            request: Shapes and types of the arguments.
            measure: Times plans for host code that tunes itself.

        Returns:
            The plan, or the candidate's failure: its host code fails or needs data, the plan is
            malformed, or the two recordings differ.
        """
        first, tuned = self._record(request, measure)
        if tuned and not isinstance(first, Failed):
            first, _ = self._record(request, measure)
        if isinstance(first, Failed):
            return first
        second, _ = self._record(request, measure)
        if isinstance(second, Failed):
            return second
        if text := difference(first, second):
            return Failed(FailureKind.RUNTIME, f"two recordings of one call differ: {text}")
        return second

    def close(self) -> None:
        """Ends the process and everything that it started."""
        with contextlib.suppress(TemplateError):
            self._child.close()

    def _record(
        self, request: messages.RecordCall, measure: Measure
    ) -> tuple[LaunchPlan | Failed, bool]:
        """Records a call once; returns also whether host code has tuned itself."""
        answer, tuned = self._exchange(request, CALL_SECONDS), False
        for _ in range(MAX_TIMED_PLANS):
            if isinstance(answer, Failed) or "measure" not in answer.header:
                break
            tuned = True
            answer = self._exchange(self._seconds(answer, measure), CALL_SECONDS)
        if isinstance(answer, Failed):
            return answer, tuned
        try:
            with reading_an_answer():
                plan = _parsed(answer, "plan")
                self.refused = parse_refused(answer.header.get("refused"))
                return plan, tuned
        except BadAnswerError as error:
            return Failed(FailureKind.RUNTIME, str(error)), tuned

    def _seconds(self, asked: ChannelMessage, measure: Measure) -> messages.TellSeconds:
        try:
            with reading_an_answer():
                plan, first = _parsed(asked, "measure"), asked.header.get("first")
                if type(first) is not int or not 0 <= first <= len(plan.steps):
                    raise BadAnswerError(f"steps from number {shown(first)} are to be timed")
        except BadAnswerError as error:
            return messages.TellSeconds(0.0, str(error))
        seconds = measure(plan, first)
        if isinstance(seconds, Failed):
            return messages.TellSeconds(0.0, seconds.message)
        return messages.TellSeconds(seconds, "")

    def _exchange(self, request: Request, seconds: float) -> ChannelMessage | Failed:
        """Sends a request and returns the answer, or the failure that it reports or shows."""
        self.confinement  # noqa: B018 - waits until the process listens
        if self._dead is not None:
            return self._dead
        if self._budget is not None:
            seconds = min(seconds, self._budget.wall)
        header, buffers = encode(request)
        start = time.monotonic()
        try:
            answer = self._child.channel.request(header, *buffers, timeout=seconds)
        except ChannelTimeout:
            text = f"{request.verb}: no answer within {seconds:.0f} s"
            return self._fail(Failed(FailureKind.TIMEOUT, text))
        except ChannelClosed:
            return self._fail(Failed(FailureKind.RUNTIME, describe_exit(self._child)))
        except ChannelError as error:
            text = f"the worker broke the protocol: {error}"
            return self._fail(Failed(FailureKind.RUNTIME, text))
        if self._budget is not None and self._budget.draw_wall(time.monotonic() - start):
            text = f"{request.verb}: {self._budget.overrun}"
            return self._fail(Failed(FailureKind.TIMEOUT, text))
        return parse_failure(answer.header["error"]) if "error" in answer.header else answer

    def _fail(self, failed: Failed) -> Failed:
        self._dead = failed
        return failed


def _parsed(answer: ChannelMessage, key: str) -> LaunchPlan:
    """Reads a plan.

    Raises:
        BadAnswerError: It is malformed.
    """
    codes, constants = (*answer.buffers, b"", b"")[:2]
    try:
        return parse_plan(answer.header.get(key), codes, constants)
    except BadPlanError as error:
        raise BadAnswerError(f"the plan of the call is refused: {error}") from None


def call_form(inputs: Mapping[str, Value]) -> messages.ArenaArguments:
    """Describes arguments of a call without their values."""
    return [
        sketched(value) if isinstance(value, torch.Tensor) else messages.Scalar(value)
        for value in inputs.values()
    ]


def sketched(tensor: torch.Tensor) -> messages.ArenaTensor:
    """Describes a tensor without its values."""
    form = tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype
    size = tensor.untyped_storage().nbytes()
    return messages.ArenaTensor(0, size, int(tensor.storage_offset()), *form)


def form_key(request: messages.RecordCall) -> str:
    """Returns a text that is equal for calls of one form: they have one plan."""
    return json.dumps(encode(request)[0], sort_keys=True, default=str)
