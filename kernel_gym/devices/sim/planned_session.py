"""A session on a simulated device that runs no host code of a candidate while it is judged.

A recorder, which has no device, makes the plan of a call from shapes. In imported tasks it may ask
for values that the plan so far has written. The simulated GPU executes it on the judge's data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TypeVar

import torch

from kernel_gym.devices.base import (
    Audit,
    Call,
    DeviceLostError,
    Failed,
    FailureKind,
)
from kernel_gym.devices.candidate_loading import CandidateLoading
from kernel_gym.devices.failures import describe_fault
from kernel_gym.devices.looking_ahead import ExpectedCall
from kernel_gym.devices.operators import MAX_READ_BYTES
from kernel_gym.devices.plan_recordings import (
    ExecutedPlan,
    PlannedCall,
    PlanRecordings,
    form_key,
    sketch,
)
from kernel_gym.devices.recordings_ahead import RecordingsAhead
from kernel_gym.devices.sim.compiled import KernelFile
from kernel_gym.devices.sim.session import (
    CALL_SECONDS,
    LOAD_SECONDS,
    MEMORY,
    SimOptions,
    SimSession,
)
from kernel_gym.devices.sim.worker import SimWorkerHandle
from kernel_gym.devices.tuning_data import tuning_inputs
from kernel_gym.plans.limits import MAX_CONSTANTS_BYTES
from kernel_gym.plans.types import BufferView, LaunchPlan, WrongOutput
from kernel_gym.plans.write import write_plan
from kernel_gym.protocol import device as device_messages
from kernel_gym.protocol import worker as messages
from kernel_gym.protocol.fields import ELEMENT_TYPES
from kernel_gym.protocol.request import Request, decode_answer, encode
from kernel_gym.sandbox.channel import ChannelError, ChannelMessage, ChannelTimeout
from kernel_gym.tasks.embedded import waits_by_compiler
from kernel_gym.tasks.problem import Value
from kernel_gym.tasks.task import Task

Result = TypeVar("Result")


class PlannedSession(SimSession):
    """One candidate in a recorder, and a simulated GPU that executes its plans.

    Args:
        task: What the source solves.
        options: How the session is opened.
        kernels: The file for compiled kernels of a suite's own code. The session closes it.
    """

    _answer_buffers = 2

    def __init__(self, task: Task, options: SimOptions, kernels: KernelFile | None = None) -> None:
        self._kernels, self._plans = kernels, options.plans
        self._returns = True
        self._loading: CandidateLoading | None = None
        self._ahead: RecordingsAhead | None = None
        self._most_read = MAX_CONSTANTS_BYTES if options.resident else MAX_READ_BYTES
        super().__init__(task, options)

    @cached_property
    def _recordings(self) -> PlanRecordings:
        assert self._loading is not None, "no source is loaded"
        ask = partial(_ask_recorder, self._worker, self._kernels, self._loading)
        return PlanRecordings(self._task, ask, self._returns)

    def _worker_role(self) -> tuple[str, list[int], dict[str, object]]:
        options = {"operators": self._task.problem.recorded, "memory": MEMORY, "arch": self._arch}
        kernels = [] if self._kernels is None else [self._kernels.descriptor]
        return "recorder", [self._note.descriptor, *kernels], options

    def load(self, source: str, language: str | None = None) -> Failed | None:
        """Builds and loads a source, unless its stored plans are judged again."""
        self.__dict__.pop("_recordings", None)  # another source has plans of its own
        self._waits_by_compiler = self._task.language == "triton" and waits_by_compiler(source)
        self._loading = CandidateLoading(
            self._task, source, self._worker, self._arch, LOAD_SECONDS, self._budget, self._family
        )
        self._returns = self._loading.returns
        if self._plans is not None and self._plans.again:
            return None
        if self._kernels is not None:
            self._kernels.fill(self._task.problem.unassembled(source), self._budget)
        return self._loading.load(language, self._options.plain)

    def second_opinion(self) -> PlannedSession:
        """Opens a session with a compiler that leaves out optional passes."""
        return PlannedSession(self._task, replace(self._options, plain=True, plans=None))

    def expect(self, calls: Sequence[ExpectedCall]) -> None:
        """Records calls ahead, where host code is Python and asks only for times."""
        assert self._loading is not None, "no source is loaded"
        stored = self._plans is not None and self._plans.again
        if self._task.problem.recorded or stored or not self._loading.asks_for_times_alone:
            return
        worker = self._worker.ahead()
        ask = partial(_ask_recorder, worker, None, replace(self._loading, recorder=worker))
        self._ahead = RecordingsAhead(PlanRecordings(self._task, ask, self._returns), calls)
        assert self._device  # it starts while the first call is recorded

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
        believed: bool = False,
    ) -> Call | Failed:
        """Records a call if its shape is new or it depends on values, then executes its plan.

        With `Audit.AGAIN` it is recorded many times more, and its plan must stay the same. With
        `believed`, the outputs are those that the plan states: of a suite's own code only, before
        its task is known.
        """
        if self._worker.dead:
            return self._worker.dead
        recorded = self._recorded(inputs, dims)
        if isinstance(recorded, Failed):
            return recorded
        if audit is Audit.AGAIN and (failed := self._repeated(inputs, dims)):
            return failed
        plan = recorded.plan

        def collect(done: device_messages.PlanDone, buffers: dict[str, int]) -> Call | Failed:
            return self._collect(_described(plan, done), inputs, dims, buffers, believed)

        begin = device_messages.BeginCall(
            noop, str(audit), self._waits_by_compiler, samples=self._samples
        )
        call = self._execute(plan, inputs, dims, begin, collect)
        if isinstance(call, Failed):
            return call
        return replace(
            call,
            refused=recorded.refused,
            plan=recorded.sha256,
            plan_from="values" if plan.depends_on_values else "shapes",
        )

    def close(self) -> None:
        """Ends the recorder and the simulated GPU."""
        if self._ahead is not None:
            self._worker.abandon()
            self._ahead.stop()
        super().close()
        if self._kernels is not None:
            self._kernels.close()

    def _recorded(
        self, inputs: Mapping[str, Value], dims: Mapping[str, int]
    ) -> PlannedCall | Failed:
        if self._plans is not None and self._plans.again:
            return self._plans.find(form_key(self._sketch(inputs, dims)), inputs)
        time_steps = partial(self._time_steps, inputs, dims)
        if self._ahead is not None:
            call = self._ahead.record(inputs, dims, time_steps)
            self._worker.take_failure(call)
        else:
            call = self._recordings.record(inputs, dims, time_steps, self._may_read(inputs, dims))
        if self._plans is not None and isinstance(call, PlannedCall):
            self._plans.keep(form_key(self._sketch(inputs, dims)), inputs, call)
        return call

    def _sketch(self, inputs: Mapping[str, Value], dims: Mapping[str, int]) -> messages.RecordCall:
        return sketch(self._task, inputs, dims, self._returns)

    def _repeated(self, inputs: Mapping[str, Value], dims: Mapping[str, int]) -> Failed | None:
        """Records a call again and again; stored plans have no recorder."""
        if self._plans is not None and self._plans.again:
            return None
        time_steps, may_read = partial(self._time_steps, inputs, dims), self._may_read(inputs, dims)
        seed = self._samples or 0
        if self._ahead is None:
            return self._recordings.repeat(inputs, dims, time_steps, seed, may_read)
        failed = self._ahead.repeat(inputs, dims, time_steps, seed)
        self._worker.take_failure(failed)
        return failed

    def _may_read(
        self, inputs: Mapping[str, Value], dims: Mapping[str, int]
    ) -> Callable[[LaunchPlan], ExecutedPlan | Failed] | None:
        """Returns what executes plans for host code that reads values; None where it may not."""

        def execute(plan: LaunchPlan) -> ExecutedPlan | Failed:
            output = plan.outputs[0] if len(plan.outputs) == 1 else None
            view = output if isinstance(output, BufferView) else None
            if view is not None and plan.read_bytes + view.nbytes > self._most_read:
                text = f"the host may read {self._most_read} bytes of the device in one call"
                return Failed(FailureKind.RUNTIME, text)
            return self._look(
                plan,
                inputs,
                dims,
                lambda done, _: ExecutedPlan(done.form, self._values(view, done.buffers)),
            )

        return execute if self._task.problem.recorded else None

    def _time_steps(
        self, inputs: Mapping[str, Value], dims: Mapping[str, int], plan: LaunchPlan, first: int
    ) -> float | Failed:
        """Returns the modelled seconds of the steps of a plan from a number on."""
        # A plan that depends on values holds for this call alone.
        if not plan.depends_on_values:
            inputs = tuning_inputs(self._task.problem, inputs, dims)
        return self._look(plan, inputs, dims, lambda done, _: sum(done.seconds[first:]))

    def _look(
        self,
        plan: LaunchPlan,
        inputs: Mapping[str, Value],
        dims: Mapping[str, int],
        look: Callable[[device_messages.PlanDone, dict[str, int]], Result],
    ) -> Result | Failed:
        """Executes a plan for a question of host code: it counts nowhere."""

        def collect(done: device_messages.PlanDone, buffers: dict[str, int]) -> Result | Failed:
            fault = self._end_call().fault
            return self._worker.fail(describe_fault(fault)) if fault else look(done, buffers)

        begin = device_messages.BeginCall(False, Audit.OFF, self._waits_by_compiler, True)
        return self._execute(plan, inputs, dims, begin, collect)

    def _values(self, view: BufferView | None, places: list[int]) -> bytes:
        """Returns the bytes of the elements of a view, in order."""
        if view is None:
            return b""
        memory = self._view(places[view.buffer] + view.offset, view.extent)
        tensor = memory.view(ELEMENT_TYPES[view.dtype]).as_strided(view.shape, view.strides)
        return bytes(tensor.contiguous().reshape(-1).view(torch.uint8).numpy())

    def _execute(
        self,
        plan: LaunchPlan,
        inputs: Mapping[str, Value],
        dims: Mapping[str, int],
        begin: device_messages.BeginCall,
        collect: Callable[[device_messages.PlanDone, dict[str, int]], Result | Failed],
    ) -> Result | Failed:
        """Executes a plan on fresh device copies of the inputs.

        Args:
            plan: The plan.
            inputs: The arguments, by name.
            dims: The dimensions of the call.
            begin: How the call begins.
            collect: Ends the call. Takes the answer of the launcher, and where the inputs are.
        """
        try:
            self._ask_device(begin)
            buffers = self._place_inputs(inputs)
            outputs = [] if self._returns else self._place_outputs(dims)
            done = self._run(plan, [*buffers.values(), *outputs])
            if self._worker.dead:  # the device still executes the plan, and would answer that
                return self._worker.dead
            if isinstance(done, Failed):
                result: Result | Failed = self._failed(done, begin)
            else:
                result = collect(done, buffers)
            owned = [] if isinstance(done, Failed) else done.owned
            for address in (*buffers.values(), *outputs, *owned):
                self._ask_device(device_messages.Free(address))
        except DeviceLostError as error:
            return self._worker.lost_device(error)
        return result

    def _failed(self, failed: Failed, begin: device_messages.BeginCall) -> Failed:
        """Ends a call whose plan could not be executed.

        A fault ends the session. So does everything else in a call that counts.
        """
        fault = self._end_call().fault
        if fault:
            return self._worker.fail(describe_fault(fault))
        return failed if begin.noop or begin.tuning else self._worker.fail(failed)

    def _run(self, plan: LaunchPlan, addresses: list[int]) -> device_messages.PlanDone | Failed:
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
            return Failed(_kind(answer["kind"]), answer["error"])
        return decode_answer(device_messages.PlanDone, answer)


def _kind(error: str) -> FailureKind:
    compiling = error in ("AsmError", "UnsupportedInstruction")
    return FailureKind.COMPILE if compiling else FailureKind.RUNTIME


def _described(plan: LaunchPlan, done: device_messages.PlanDone) -> dict[str, object]:
    """Describes the outputs of a plan as a worker describes what a candidate returns."""
    return {"outputs": [_output(output, done.buffers) for output in plan.outputs]}


def _output(output: BufferView | WrongOutput, buffers: list[int]) -> dict[str, object]:
    if isinstance(output, WrongOutput):
        return {"wrong": output.text}
    form = {"shape": list(output.shape), "strides": list(output.strides), "dtype": output.dtype}
    return {"address": buffers[output.buffer] + output.offset, **form}


def _ask_recorder(
    worker: SimWorkerHandle,
    kernels: KernelFile | None,
    loading: CandidateLoading,
    request: Request,
) -> ChannelMessage | Failed:
    """Asks the recorder. It knows no session, so that a closed session is freed at once."""
    if worker.dead:
        return worker.dead
    before = worker.host_seconds
    answer = loading.ask(request, CALL_SECONDS)
    if kernels is not None:
        dead = worker.dead
        stopped = dead is not None and dead.kind is FailureKind.TIMEOUT
        kernels.keep(worker.host_seconds - before, stopped)
    return answer
