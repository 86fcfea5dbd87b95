"""The plans of one candidate, as its recorder makes them: recorded twice, parsed and kept.

Nobody believes the recorder. What it sends is parsed with bounds, and a plan that it makes twice in
different ways is refused. Host code of imported tasks may read values. Then a plan is of one call,
and plans of one shape are equal up to the first value that differs.
"""

from __future__ import annotations

import json
import random
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from kernel_gym.devices.answers import BadAnswerError, parse_refused, reading_an_answer
from kernel_gym.devices.base import Failed, FailureKind
from kernel_gym.devices.hip_build import launcher_outputs
from kernel_gym.devices.placement import sketched_outputs
from kernel_gym.inert import shown
from kernel_gym.plans.identity import dependencies, difference, plan_hash
from kernel_gym.plans.parse import parse_plan
from kernel_gym.plans.reading import BadPlanError
from kernel_gym.plans.types import LaunchPlan, LaunchStep, ReadStep, TorchOperatorStep
from kernel_gym.protocol import worker as messages
from kernel_gym.protocol.request import Request, encode
from kernel_gym.sandbox.channel import ChannelMessage
from kernel_gym.tasks.problem import Value
from kernel_gym.tasks.task import Task

MAX_QUESTIONS = 256
"""Questions that one recording may ask: for times, and in imported tasks for values."""
MAX_KEPT_BYTES = 128 << 20
"""Bytes of code and constants of all plans that are kept. One plan has at most 65 MiB."""
MAX_KEPT_PLANS = 32
MIN_REPEATS, MAX_REPEATS = 16, 64
"""How often a repeated call is recorded more: a number between these is drawn. One takes 0.8 ms."""
MAX_REPEATED_STEPS = 1024
"""Steps of all repeats of a call together; a plan with many steps is repeated less often."""
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


@dataclass(frozen=True)
class ExecutedPlan:
    """Memory that a plan has left, for the host code of an imported task.

    Args:
        form: The form of the result of a last operator whose results have no place.
        values: The bytes of the elements of the only output; empty if there is none.
    """

    form: object
    values: bytes


Execute = Callable[[LaunchPlan], ExecutedPlan | Failed]
"""Executes the plan of a call so far on the data of the call."""


@dataclass(frozen=True)
class RecordingAnswers:
    """Answers the questions of a recorder.

    Args:
        seconds: Times plans.
        execute: Executes plans on the data of the call; None where host code may read nothing.
    """

    seconds: TimeSteps
    execute: Execute | None = None


class PlanRecordings:
    """Records calls, and keeps the plan of each shape.

    Args:
        task: What the candidate solves.
        ask: Sends a request to the recorder.
        returns: Whether the candidate returns its outputs; a launcher in HIP gets them.
    """

    def __init__(self, task: Task, ask: Ask, returns: bool) -> None:
        self._task, self._ask, self._returns = task, ask, returns
        self._kept: OrderedDict[str, PlannedCall] = OrderedDict()
        self._known: dict[str, str] = {}  # digests by shape and values, also of plans not kept
        self._told: dict[str, Request] = {}  # answers within one call, by question
        self._has_tuned = False
        self._unanswered: Failed | None = None  # the recorder waits for an answer for good

    def key(self, inputs: Mapping[str, Value], dims: Mapping[str, int]) -> str:
        """Returns a text that calls of one shape have in common."""
        return form_key(sketch(self._task, inputs, dims, self._returns))

    def record(
        self,
        inputs: Mapping[str, Value],
        dims: Mapping[str, int],
        time_steps: TimeSteps,
        execute: Execute | None = None,
    ) -> PlannedCall | Failed:
        """Returns the plan of a call. The first call of a shape is recorded twice.

        A recording in which host code has tuned itself does not count: it resets what it has
        overwritten. A plan that depends on values is recorded for each call.

        Args:
            inputs: The arguments, by name. Only their shapes, types and scalars are used.
            dims: The dimensions of the call.
            time_steps: Times a plan for host code that tunes itself.
            execute: Executes a plan for host code that reads values; None where it may not.

        Returns:
            The plan, or the candidate's failure: its host code fails or needs data, the plan is
            malformed, or the two recordings differ.
        """
        request = sketch(self._task, inputs, dims, self._returns)
        key = form_key(request)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        self._told.clear()
        call = self._record_twice(request, RecordingAnswers(time_steps, execute))
        if isinstance(call, Failed):
            return call
        for state, digest in dependencies(key, call.plan):
            if self._known.setdefault(state, digest) != digest:
                return Failed(FailureKind.RUNTIME, f"{_DIFFER}: an earlier one had another plan")
        if not call.plan.depends_on_values:
            self._keep(key, call)
        return call

    def repeat(
        self,
        inputs: Mapping[str, Value],
        dims: Mapping[str, int],
        time_steps: TimeSteps,
        seed: int,
        execute: Execute | None = None,
    ) -> Failed | None:
        """Records a call again, a drawn number of times, and compares each plan with the kept one.

        So host code that does other work after some calls is refused, up to that number. Nothing
        is done for a plan that depends on values: each of its calls is recorded anyway. Host code
        that tunes itself in every call is recorded once more.

        Args:
            inputs: The arguments, by name, of a call that `record` has recorded.
            dims: The dimensions of the call.
            time_steps: Times a plan for host code that tunes itself.
            seed: Draws the number. The candidate must not know it.
            execute: Executes a plan for host code that reads values; None where it may not.

        Returns:
            The candidate's failure, if a recording fails or has another plan.
        """
        request = sketch(self._task, inputs, dims, self._returns)
        kept = self._kept.get(form_key(request))
        if kept is None:
            return None
        self._told.clear()
        drawn = random.Random(f"repeats {seed}").randint(MIN_REPEATS, MAX_REPEATS)
        most = max(1, MAX_REPEATED_STEPS // max(1, len(kept.plan.steps)))
        earlier = None
        for _ in range(min(drawn, most)):
            again = self._record(request, RecordingAnswers(time_steps, execute), earlier)
            if isinstance(again, Failed):
                return again
            if text := difference(kept.plan, again.call.plan):
                return Failed(FailureKind.RUNTIME, f"{_DIFFER}: {text}")
            if self._has_tuned:
                break
            earlier = again
        return None

    def _record_twice(self, request: Request, answers: RecordingAnswers) -> PlannedCall | Failed:
        first = self._record(request, answers)
        if self._has_tuned and not isinstance(first, Failed):
            first = self._record(request, answers)
        if isinstance(first, Failed):
            return first
        second = self._record(request, answers, first)
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
        self, request: Request, answers: RecordingAnswers, earlier: _Recording | None = None
    ) -> _Recording | Failed:
        """Records a call. An answer that equals an earlier one byte by byte is parsed once."""
        if self._unanswered is not None:
            return self._unanswered
        self._has_tuned = False
        answer = self._ask(request)
        for _ in range(MAX_QUESTIONS):
            if isinstance(answer, Failed) or "ask" not in answer.header:
                break
            answer = self._ask(self._answer(answer, answers))
        if isinstance(answer, Failed):
            return answer
        if "ask" in answer.header:
            asked = f"a call asks more than {MAX_QUESTIONS} questions"
            if answer.header["ask"] == "seconds":
                asked += ": it tunes itself with too many configurations"
            self._unanswered = Failed(FailureKind.RUNTIME, asked)
            return self._unanswered
        if earlier is not None and answer == earlier.answer:
            return earlier
        try:
            with reading_an_answer():
                refused = parse_refused(answer.header.get("refused"))
                plan = _parse(answer, answers)
                if any(isinstance(s, TorchOperatorStep) and s.results is None for s in plan.steps):
                    raise BadAnswerError("the plan of the call does not say where results go")
                return _Recording(answer, PlannedCall(plan, plan_hash(plan), refused))
        except BadAnswerError as error:
            return Failed(FailureKind.RUNTIME, str(error))

    def _answer(self, asked: ChannelMessage, answers: RecordingAnswers) -> Request:
        kind = asked.header.get("ask")
        self._has_tuned |= kind == "seconds"
        try:
            with reading_an_answer():
                plan = _parse(asked, answers)
                if kind == "seconds":
                    return _seconds(asked.header.get("first"), plan, answers.seconds)
                if kind not in ("values", "forms"):
                    raise BadAnswerError(f"the recorder asks for {shown(kind)}")
                if answers.execute is None:
                    raise BadAnswerError("host code reads no values in this task")
                key = f"{kind} {plan_hash(plan)}"
                if key not in self._told:
                    self._told[key] = _executed(kind, answers.execute(plan))
                return self._told[key]
        except BadAnswerError as error:
            return _TOLD_NOTHING.get(str(kind), _TOLD_NOTHING["seconds"])(str(error))


@dataclass(frozen=True)
class _Recording:
    """A plan, and the answer of the recorder that holds it."""

    answer: ChannelMessage
    call: PlannedCall


def form_key(request: Request) -> str:
    """Returns a text that requests of one shape have in common."""
    return json.dumps(encode(request)[0], sort_keys=True)


def sketch(
    task: Task, inputs: Mapping[str, Value], dims: Mapping[str, int], returns: bool
) -> messages.RecordCall:
    """Returns the request to a recorder for a call: shapes and types, no values.

    Args:
        task: What the candidate solves.
        inputs: The arguments, by name.
        dims: The dimensions of the call.
        returns: Whether the candidate returns its outputs; a launcher in HIP gets them.
    """
    args: messages.ArenaArguments = [
        _sketched(value) if isinstance(value, torch.Tensor) else messages.Scalar(value)
        for value in inputs.values()
    ]
    if returns:
        return messages.RecordCall(args, [])
    args += map(_sketched, sketched_outputs(task.problem, dims).values())
    args += [messages.Scalar(size) for size in task.problem.c_sizes(dims).values()]
    return messages.RecordCall(args, launcher_outputs(task.problem))


def _sketched(tensor: torch.Tensor) -> messages.ArenaTensor:
    size = tensor.untyped_storage().nbytes()
    offset = int(tensor.storage_offset())
    form = tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype
    return messages.ArenaTensor(0, size, offset, *form)


def _seconds(first: object, plan: LaunchPlan, time_steps: TimeSteps) -> Request:
    """Executes a plan for host code that tunes itself, and tells the time of its last steps."""
    if type(first) is not int or not 0 <= first <= len(plan.steps):
        raise BadAnswerError(f"steps from number {shown(first)} are to be timed")
    seconds = time_steps(plan, first)
    if isinstance(seconds, Failed):
        return messages.TellSeconds(0.0, seconds.message)
    return messages.TellSeconds(seconds, "")


def _executed(kind: str, done: ExecutedPlan | Failed) -> Request:
    if isinstance(done, Failed):
        return _TOLD_NOTHING[kind](done.message)
    if kind == "values":
        return messages.TellValues("", done.values)
    return messages.TellForms(done.form, "")


_TOLD_NOTHING: Mapping[str, Callable[[str], Request]] = {
    "seconds": lambda error: messages.TellSeconds(0.0, error),
    "values": messages.TellValues,
    "forms": lambda error: messages.TellForms(None, error),
}
"""Makes the answer that refuses a question, by its kind."""


def _parse(answer: ChannelMessage, answers: RecordingAnswers) -> LaunchPlan:
    """Reads a plan of the recorder.

    Raises:
        BadAnswerError: It is malformed, or it has operators or values in a task without them.
    """
    codes, constants = (*answer.buffers, b"", b"")[:2]
    try:
        plan = parse_plan(answer.header.get("plan"), codes, constants)
    except BadPlanError as error:
        raise BadAnswerError(f"the plan of the call is refused: {error}") from None
    if any(isinstance(step, LaunchStep) and step.copies for step in plan.steps):
        raise BadAnswerError("the plan of the call is refused: it has a launch of the judge")
    if answers.execute is None and any(
        isinstance(s, TorchOperatorStep | ReadStep) for s in plan.steps
    ):
        raise BadAnswerError("the plan of the call is refused: it has operators of PyTorch")
    return plan
