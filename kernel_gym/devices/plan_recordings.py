"""The plans of one candidate, as its recorder makes them: recorded twice, parsed and kept.

Nobody believes the recorder. What it sends is parsed with bounds, and a plan that it makes twice in
different ways is refused.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from kernel_gym.devices.answers import BadAnswerError, parse_refused, reading_an_answer
from kernel_gym.devices.base import Failed, FailureKind
from kernel_gym.devices.hip_build import launcher_outputs
from kernel_gym.devices.placement import sketched_outputs
from kernel_gym.inert import shown
from kernel_gym.plans.identity import difference, plan_hash
from kernel_gym.plans.parse import parse_plan
from kernel_gym.plans.reading import BadPlanError
from kernel_gym.plans.types import LaunchPlan
from kernel_gym.protocol import worker as messages
from kernel_gym.protocol.request import Request, encode
from kernel_gym.sandbox.channel import ChannelMessage
from kernel_gym.tasks.problem import Value
from kernel_gym.tasks.task import Task

MAX_TIMED_PLANS = 256
"""Plans that one recording may have timed, for host code that tunes itself."""
MAX_KEPT_BYTES = 128 << 20
"""Bytes of code and constants of all plans that are kept. One plan has at most 65 MiB."""
MAX_KEPT_PLANS = 32
_DIFFER = "two recordings of one call differ"


@dataclass(frozen=True)
class PlannedCall:
    """The plan of calls of one shape, and the operators that were refused while it was made."""

    plan: LaunchPlan
    sha256: str
    """The digest of the plan."""
    refused: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of code and constants."""
        return self.plan.constants_bytes + sum(len(code.content) for code in self.plan.codes)


Ask = Callable[[Request], ChannelMessage | Failed]
"""Sends a request to the recorder and returns its answer, or the failure of the candidate."""
TimeSteps = Callable[[LaunchPlan, int], float | Failed]
"""Executes a plan on data of its shape that nobody judges. Returns the seconds of its steps from a
number on."""


class PlanRecordings:
    """Records calls, and keeps the plan of each shape.

    Args:
        task: What the candidate solves.
        ask: Sends a request to the recorder.
    """

    def __init__(self, task: Task, ask: Ask) -> None:
        self._task, self._ask = task, ask
        self._kept: OrderedDict[str, PlannedCall] = OrderedDict()
        self._known: dict[str, str] = {}  # digests by shape, also of plans that are not kept
        self._has_tuned = False

    def forget(self) -> None:
        """Forgets all plans, as another source was loaded."""
        self._kept.clear()
        self._known.clear()

    def record(
        self, inputs: Mapping[str, Value], dims: Mapping[str, int], time_steps: TimeSteps
    ) -> PlannedCall | Failed:
        """Returns the plan of a call. The first call of a shape is recorded twice.

        A recording in which host code has tuned itself does not count: it resets what it has
        overwritten.

        Args:
            inputs: The arguments, by name. Only their shapes, types and scalars are used.
            dims: The dimensions of the call.
            time_steps: Times a plan for host code that tunes itself.

        Returns:
            The plan, or the candidate's failure: its host code fails or needs data, the plan is
            malformed, or the two recordings differ.
        """
        request = sketch(self._task, inputs, dims)
        key = form_key(request)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        call = self._record_twice(request, time_steps)
        if isinstance(call, Failed):
            return call
        if self._known.setdefault(key, call.sha256) != call.sha256:
            return Failed(FailureKind.RUNTIME, f"{_DIFFER}: an earlier one had another plan")
        self._keep(key, call)
        return call

    def _record_twice(self, request: Request, time_steps: TimeSteps) -> PlannedCall | Failed:
        first = self._record(request, time_steps)
        if self._has_tuned:
            first = self._record(request, time_steps)
        if isinstance(first, Failed):
            return first
        second = self._record(request, time_steps, first)
        if isinstance(second, Failed):
            return second
        if text := difference(first.call.plan, second.call.plan):
            return Failed(FailureKind.RUNTIME, f"{_DIFFER}: {text}")
        return second.call

    def _keep(self, key: str, call: PlannedCall) -> None:
        self._kept[key] = call
        size = sum(kept.size for kept in self._kept.values())
        while len(self._kept) > MAX_KEPT_PLANS or size > MAX_KEPT_BYTES:
            size -= self._kept.popitem(last=False)[1].size

    def _record(
        self, request: Request, time_steps: TimeSteps, earlier: _Recording | None = None
    ) -> _Recording | Failed:
        """Records a call. An answer that equals an earlier one byte by byte is parsed once."""
        self._has_tuned = False
        answer = self._ask(request)
        for _ in range(MAX_TIMED_PLANS):
            if isinstance(answer, Failed) or "measure" not in answer.header:
                break
            self._has_tuned = True
            answer = self._ask(_told(answer, time_steps))
        if isinstance(answer, Failed):
            return answer
        if earlier is not None and answer == earlier.answer:
            return earlier
        try:
            with reading_an_answer():
                refused = parse_refused(answer.header.get("refused"))
                plan = _parse(answer, "plan")
                return _Recording(answer, PlannedCall(plan, plan_hash(plan), refused))
        except BadAnswerError as error:
            return Failed(FailureKind.RUNTIME, str(error))


@dataclass(frozen=True)
class _Recording:
    """A plan, and the answer of the recorder that holds it."""

    answer: ChannelMessage
    call: PlannedCall


def form_key(request: Request) -> str:
    """Returns a text that requests of one shape have in common."""
    return json.dumps(encode(request)[0], sort_keys=True)


def sketch(task: Task, inputs: Mapping[str, Value], dims: Mapping[str, int]) -> messages.RecordCall:
    """Returns the request to a recorder for a call: shapes and types, no values."""
    args: messages.ArenaArguments = [
        _sketched(value) if isinstance(value, torch.Tensor) else messages.Scalar(value)
        for value in inputs.values()
    ]
    if task.language != "hip":
        return messages.RecordCall(args, [])
    args += map(_sketched, sketched_outputs(task.problem, dims).values())
    args += [messages.Scalar(size) for size in task.problem.c_sizes(dims).values()]
    return messages.RecordCall(args, launcher_outputs(task.problem))


def _sketched(tensor: torch.Tensor) -> messages.ArenaTensor:
    size = tensor.untyped_storage().nbytes()
    offset = int(tensor.storage_offset())
    form = tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype
    return messages.ArenaTensor(0, size, offset, *form)


def _told(asked: ChannelMessage, time_steps: TimeSteps) -> messages.TellSeconds:
    """Executes a plan for host code that tunes itself, and tells the time of its last steps."""
    try:
        with reading_an_answer():
            plan, first = _parse(asked, "measure"), asked.header.get("first")
            if type(first) is not int or not 0 <= first <= len(plan.steps):
                raise BadAnswerError(f"steps from number {shown(first)} are to be timed")
    except BadAnswerError as error:
        return messages.TellSeconds(0.0, str(error))
    seconds = time_steps(plan, first)
    if isinstance(seconds, Failed):
        return messages.TellSeconds(0.0, seconds.message)
    return messages.TellSeconds(seconds, "")


def _parse(answer: ChannelMessage, key: str) -> LaunchPlan:
    """Reads a plan of the recorder.

    Raises:
        BadAnswerError: It is malformed, or not for the inputs and outputs of the call.
    """
    codes, constants = (*answer.buffers, b"", b"")[:2]
    try:
        return parse_plan(answer.header.get(key), codes, constants)
    except BadPlanError as error:
        raise BadAnswerError(f"the plan of the call is refused: {error}") from None
