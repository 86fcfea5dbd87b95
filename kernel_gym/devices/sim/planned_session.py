"""A session on a simulated device that runs no host code of a candidate while it is judged.

A recorder, which has no device, makes the plan of a call from shapes. The simulated GPU executes
the plan on the judge's data.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from kernel_gym.devices.answers import BadAnswerError, parse_refused, reading_an_answer
from kernel_gym.devices.base import Audit, Call, DeviceLostError, Failed, FailureKind
from kernel_gym.devices.hip_build import launcher_outputs
from kernel_gym.devices.placement import sketched_outputs
from kernel_gym.devices.sim.session import (
    CALL_SECONDS,
    MEMORY,
    WORKER_LIMITS,
    SimSession,
    _DeviceFull,
)
from kernel_gym.errors import InputError
from kernel_gym.inert import shown
from kernel_gym.plans.identity import difference
from kernel_gym.plans.parse import parse_plan
from kernel_gym.plans.reading import BadPlanError
from kernel_gym.plans.types import BufferView, LaunchPlan, WrongOutput
from kernel_gym.plans.write import write_plan
from kernel_gym.protocol import device as device_messages
from kernel_gym.protocol import worker as messages
from kernel_gym.protocol.request import encode
from kernel_gym.sandbox.channel import ChannelError, ChannelMessage, ChannelTimeout
from kernel_gym.sandbox.spawn import Child, Template
from kernel_gym.tasks.problem import Value
from kernel_gym.tasks.task import Task

MAX_TIMED_PLANS = 256
"""Plans that one call may have timed, for host code that tunes itself."""


class PlannedSession(SimSession):
    """One candidate in a recorder, and a simulated GPU that executes its plans.

    Args:
        task: What the source solves.
        threads: Host threads of the simulated GPU.
        trusted: Whether the source is the project's own.
        options: Further arguments of `SimSession`.

    Raises:
        InputError: The task is of an imported suite, whose calls may need data.
    """

    def __init__(self, task: Task, threads: int, trusted: bool, **options: Any) -> None:
        if task.problem.recorded:
            raise InputError(f"{task.id}: calls of imported tasks have no plan yet")
        super().__init__(task, threads, trusted, **options)
        self._has_tuned = False
        self._seconds: list[float] = []
        self._refused: tuple[str, ...] = ()

    def _fork_worker(
        self,
        template: Template,
        pipe: socket.socket,
        environment: dict[str, str],
        trusted: bool,
        writable: list[str],
    ) -> Child:
        options = {"arch": self._arch, "memory": MEMORY}
        return template.fork(
            "recorder",
            [],
            options,
            WORKER_LIMITS,
            environment,
            trusted,
            writable,
            self._family,
            buffers=2,
        )

    def record(self, inputs: Mapping[str, Value], dims: Mapping[str, int]) -> LaunchPlan | Failed:
        """Records the plan of a call twice and returns it.

        A recording in which host code has tuned itself does not count: it resets what it has
        overwritten.

        Args:
            inputs: The arguments, by name. Their values are used only when host code tunes itself.
            dims: The dimensions of the call.

        Returns:
            The plan, or the candidate's failure: its host code fails or needs data, the plan is
            malformed, or the two recordings differ.
        """
        first = self._record(inputs, dims)
        if self._has_tuned:
            first = self._record(inputs, dims)
        if isinstance(first, Failed):
            return first
        second = self._record(inputs, dims)
        if isinstance(second, Failed):
            return second
        if text := difference(first, second):
            text = f"two recordings of one call differ: {text}"
            return self._worker.fail(Failed(FailureKind.RUNTIME, text))
        return second

    def call(
        self,
        inputs: Mapping[str, Value],
        dims: Mapping[str, int],
        noop: bool = False,
        audit: Audit = Audit.OFF,
        believed: bool = False,
    ) -> Call | Failed:
        """Records a call, then executes its plan on the inputs, as `SimSession.call` does."""
        plan = self.record(inputs, dims)
        if isinstance(plan, Failed):
            return plan
        call = self.execute(plan, inputs, dims, noop, audit)
        return call if isinstance(call, Failed) else replace(call, refused=self._refused)

    def execute(
        self,
        plan: LaunchPlan,
        inputs: Mapping[str, Value],
        dims: Mapping[str, int],
        noop: bool = False,
        audit: Audit = Audit.OFF,
    ) -> Call | Failed:
        """Executes a plan on fresh device copies of the inputs."""
        if self._worker.dead:
            return self._worker.dead
        try:
            begin = device_messages.BeginCall(noop, str(audit), self._waits_by_compiler)
            self._ask_device(begin)
            try:
                _, buffers = self._place_inputs(inputs)
                if self._task.language == "hip":
                    self._launcher_arguments(dims)
            except _DeviceFull as error:
                return self._worker.fail(Failed(FailureKind.RUNTIME, str(error)))
            done = self._run(plan, [*buffers.values(), *self._outputs])
            answer = done if isinstance(done, Failed) else _described(plan, done)
            result = self._collect(answer, inputs, dims, buffers, believed=False)
            owned = [] if isinstance(done, Failed) else done["owned"]
            for address in (*buffers.values(), *self._outputs, *owned):
                self._ask_device(device_messages.Free(address))
        except DeviceLostError as error:
            return self._worker.lost_device(error)
        return result

    def _record(self, inputs: Mapping[str, Value], dims: Mapping[str, int]) -> LaunchPlan | Failed:
        self._has_tuned = False
        if self._worker.dead:
            return self._worker.dead
        answer = self._worker.exchange(self.sketch(inputs, dims), CALL_SECONDS)
        for _ in range(MAX_TIMED_PLANS):
            if isinstance(answer, Failed) or "measure" not in answer.header:
                break
            self._has_tuned = True
            answer = self._worker.exchange(self._time(answer, inputs, dims), CALL_SECONDS)
        if isinstance(answer, Failed):
            return answer
        try:
            with reading_an_answer():
                plan = self._parse(answer, "plan")
                self._refused = parse_refused(answer.header.get("refused"))
                return plan
        except BadAnswerError as error:
            return self._worker.fail(Failed(FailureKind.RUNTIME, str(error)))

    def sketch(self, inputs: Mapping[str, Value], dims: Mapping[str, int]) -> messages.RecordCall:
        """Returns the request to a recorder for a call: shapes and types, no values."""
        args: messages.ArenaArguments = [
            _sketched(value) if isinstance(value, torch.Tensor) else messages.Scalar(value)
            for value in inputs.values()
        ]
        if self._task.language != "hip":
            return messages.RecordCall(args, [])
        problem = self._task.problem
        args += map(_sketched, sketched_outputs(problem, dims).values())
        args += [messages.Scalar(size) for size in problem.c_sizes(dims).values()]
        return messages.RecordCall(args, launcher_outputs(problem))

    def _time(
        self, asked: ChannelMessage, inputs: Mapping[str, Value], dims: Mapping[str, int]
    ) -> messages.TellSeconds:
        """Executes a plan for host code that tunes itself, and tells the time of its last steps."""
        try:
            with reading_an_answer():
                plan, first = self._parse(asked, "measure"), asked.header.get("first")
                if type(first) is not int or not 0 <= first <= len(plan.steps):
                    raise BadAnswerError(f"steps from number {shown(first)} are to be timed")
        except BadAnswerError as error:
            return messages.TellSeconds(0.0, str(error))
        call = self.execute(plan, inputs, dims)
        if isinstance(call, Failed):
            return messages.TellSeconds(0.0, call.message)
        return messages.TellSeconds(sum(self._seconds[first:]), "")

    def _parse(self, answer: ChannelMessage, key: str) -> LaunchPlan:
        """Reads a plan of the recorder.

        Raises:
            BadAnswerError: It is malformed, or not for the inputs and outputs of the call.
        """
        codes, constants = (*answer.buffers, b"", b"")[:2]
        try:
            return parse_plan(answer.header.get(key), codes, constants)
        except BadPlanError as error:
            raise BadAnswerError(f"the plan of the call is refused: {error}") from None

    def _run(self, plan: LaunchPlan, addresses: list[int]) -> dict[str, Any] | Failed:
        """Lets the simulated GPU execute a plan and charges its time to the candidate."""
        header, codes, constants = write_plan(plan)
        request, _ = encode(device_messages.RunPlan(header, addresses, b"", b""))
        meter = self._worker.meter(CALL_SECONDS)
        try:
            channel = self._device.channel
            answer = channel.request(request, codes, constants, timeout=meter.patience).header
        except ChannelTimeout:
            return self._worker.too_slow("call", CALL_SECONDS)
        except ChannelError as error:
            raise DeviceLostError(f"the simulated device failed: {error}") from error
        finally:
            self._worker.charge(meter)
        if "error" in answer:
            return self._worker.fail(Failed(_kind(answer["kind"]), answer["error"]))
        self._seconds = answer["seconds"]
        return answer


def _kind(error: str) -> FailureKind:
    compiling = error in ("AsmError", "UnsupportedInstruction")
    return FailureKind.COMPILE if compiling else FailureKind.RUNTIME


def _sketched(tensor: torch.Tensor) -> messages.ArenaTensor:
    size = tensor.untyped_storage().nbytes()
    offset = int(tensor.storage_offset())
    form = tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype
    return messages.ArenaTensor(0, size, offset, *form)


def _described(plan: LaunchPlan, done: Mapping[str, Any]) -> dict[str, Any]:
    """Describes the outputs of a plan as a worker describes what a candidate returns."""
    return {"outputs": [_output(one, done["buffers"]) for one in plan.outputs]}


def _output(output: BufferView | WrongOutput, buffers: list[int]) -> dict[str, Any]:
    if isinstance(output, WrongOutput):
        return {"wrong": output.text}
    form = {"shape": list(output.shape), "strides": list(output.strides), "dtype": output.dtype}
    return {"address": buffers[output.buffer] + output.offset, **form}
