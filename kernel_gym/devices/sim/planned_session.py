"""A session on a simulated device that runs no host code of a candidate while it is judged.

A recorder, which has no device, makes the plan of a call from shapes. The simulated GPU executes
the plan on the judge's data.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from kernel_gym.devices.base import Audit, Call, DeviceLostError, Failed, FailureKind
from kernel_gym.devices.hip_build import compile_hip, launcher_outputs
from kernel_gym.devices.plan_recordings import PlannedCall, PlanRecordings
from kernel_gym.devices.sim.session import (
    CALL_SECONDS,
    LOAD_SECONDS,
    MEMORY,
    DeviceFull,
    SimOptions,
    SimSession,
)
from kernel_gym.devices.sim.worker import SimWorkerHandle
from kernel_gym.devices.tuning_data import tuning_inputs
from kernel_gym.errors import InputError
from kernel_gym.plans.types import BufferView, LaunchPlan, WrongOutput
from kernel_gym.plans.write import write_plan
from kernel_gym.protocol import device as device_messages
from kernel_gym.protocol import worker as messages
from kernel_gym.protocol.request import Request, encode
from kernel_gym.sandbox.channel import ChannelError, ChannelMessage, ChannelTimeout
from kernel_gym.tasks.problem import Value
from kernel_gym.tasks.task import Task


class PlannedSession(SimSession):
    """One candidate in a recorder, and a simulated GPU that executes its plans.

    Args:
        task: What the source solves.
        options: How the session is opened.

    Raises:
        InputError: The task is of an imported suite, whose calls may need data.
    """

    _answer_buffers = 2

    def __init__(self, task: Task, options: SimOptions) -> None:
        if task.problem.recorded:
            raise InputError(f"{task.id}: calls of imported tasks have no plan yet")
        super().__init__(task, options)
        self._recordings = PlanRecordings(task, partial(_ask, self._worker))

    def _worker_role(self, pipe: socket.socket) -> tuple[str, list[int], dict[str, Any]]:
        return "recorder", [], {"arch": self._arch, "memory": MEMORY}

    def load(self, source: str, language: str | None = None) -> Failed | None:
        """Builds and loads a source."""
        self._recordings.forget()
        # Gluon names LDS and its waits itself
        self._waits_by_compiler = self._task.language == "triton" and "gluon" not in source
        language = language or self._task.language
        request = messages.LoadOnSimulator(language, self._task.entry, source)
        if self._task.language == "hip":
            built = compile_hip(source, self._arch, LOAD_SECONDS, self._budget, self._family)
            if isinstance(built, Failed):
                return built
            assembler, library = built.results
            outputs = launcher_outputs(self._task.problem)
            request = replace(request, outputs=outputs, assembler=assembler, library=library)
        answer = self._worker.ask(request, LOAD_SECONDS)
        return answer if isinstance(answer, Failed) else None

    def record(self, inputs: Mapping[str, Value], dims: Mapping[str, int]) -> LaunchPlan | Failed:
        """Returns the plan of a call, as `PlanRecordings.record` does."""
        recorded = self._recorded(inputs, dims)
        return recorded if isinstance(recorded, Failed) else recorded.plan

    def call(
        self,
        inputs: Mapping[str, Value],
        dims: Mapping[str, int],
        noop: bool = False,
        audit: Audit = Audit.OFF,
    ) -> Call | Failed:
        """Records a call if its shape is new, then executes its plan on the inputs."""
        if self._worker.dead:
            return self._worker.dead
        recorded = self._recorded(inputs, dims)
        if isinstance(recorded, Failed):
            return recorded
        begin = device_messages.BeginCall(noop, str(audit), self._waits_by_compiler)
        call = self._execute(recorded.plan, inputs, dims, begin)[0]
        return (
            call
            if isinstance(call, Failed)
            else replace(call, refused=recorded.refused, plan=recorded.sha256)
        )

    def _recorded(
        self, inputs: Mapping[str, Value], dims: Mapping[str, int]
    ) -> PlannedCall | Failed:
        def time_steps(plan: LaunchPlan, first: int) -> float | Failed:
            data = tuning_inputs(self._task.problem, inputs, dims)
            begin = device_messages.BeginCall(False, Audit.OFF, self._waits_by_compiler, True)
            call, seconds = self._execute(plan, data, dims, begin)
            return call if isinstance(call, Failed) else sum(seconds[first:])

        return self._recordings.record(inputs, dims, time_steps)

    def _execute(
        self,
        plan: LaunchPlan,
        inputs: Mapping[str, Value],
        dims: Mapping[str, int],
        begin: device_messages.BeginCall,
    ) -> tuple[Call | Failed, list[float]]:
        """Executes a plan on fresh device copies of the inputs.

        Returns:
            The call, and the seconds of each step.
        """
        try:
            self._ask_device(begin)
            try:
                _, buffers = self._place_inputs(inputs)
                if self._task.language == "hip":
                    self._launcher_arguments(dims)
            except DeviceFull as error:
                return self._worker.fail(Failed(FailureKind.RUNTIME, str(error))), []
            done = self._run(plan, [*buffers.values(), *self._outputs])
            owned, seconds, answer = [], [], done
            if not isinstance(done, Failed):
                owned, seconds, answer = done["owned"], done["seconds"], _described(plan, done)
            result = self._collect(answer, inputs, dims, buffers)
            for address in (*buffers.values(), *self._outputs, *owned):
                self._ask_device(device_messages.Free(address))
        except DeviceLostError as error:
            return self._worker.lost_device(error), []
        return result, seconds

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
        return answer


def _ask(worker: SimWorkerHandle, request: Request) -> ChannelMessage | Failed:
    return worker.dead or worker.exchange(request, CALL_SECONDS)


def _kind(error: str) -> FailureKind:
    compiling = error in ("AsmError", "UnsupportedInstruction")
    return FailureKind.COMPILE if compiling else FailureKind.RUNTIME


def _described(plan: LaunchPlan, done: Mapping[str, Any]) -> dict[str, Any]:
    """Describes the outputs of a plan as a worker describes what a candidate returns."""
    return {"outputs": [_output(one, done["buffers"]) for one in plan.outputs]}


def _output(output: BufferView | WrongOutput, buffers: list[int]) -> dict[str, Any]:
    if isinstance(output, WrongOutput):
        return {"wrong": output.text}
    form = {"shape": list(output.shape), "strides": list(output.strides), "dtype": output.dtype}
    return {"address": buffers[output.buffer] + output.offset, **form}
