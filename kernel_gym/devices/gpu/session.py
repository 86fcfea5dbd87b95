"""One candidate or baseline on a real GPU: its program, and the launcher that runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import torch

from kernel_gym.devices.answers import (
    PlacedOutput,
    Wrong,
    misplaced_text,
    parse_call,
    reading_an_answer,
    stated_outputs,
)
from kernel_gym.devices.base import (
    Audit,
    Call,
    DeviceLostError,
    Failed,
    FailureKind,
    OutputTensor,
    SketchedCall,
    TimedCall,
    TimedSession,
    WorkloadTooLargeError,
)
from kernel_gym.devices.gpu.host_memory import HostMemory, aligned
from kernel_gym.devices.gpu.launchers import LauncherSlot
from kernel_gym.devices.gpu.programs import Exclusive, LoadedCall, Program, ReferenceProgram
from kernel_gym.devices.placement import in_place_inputs, storage_bytes
from kernel_gym.launcher.process import (
    LauncherLostError,
    NoGraphError,
    PlanFailedError,
    PlanTimeoutError,
)
from kernel_gym.plans.types import BufferView, WrongOutput
from kernel_gym.records import KernelFacts
from kernel_gym.tasks.problem import Value
from kernel_gym.tasks.task import Task

TORCH = "torch"
"""The language of references."""


class GpuSession:
    """One source on a GPU.

    Args:
        task: What the source solves.
        program: Runs it, if it is no reference.
        memory: Memory that the launcher reads and writes.
        slot: The launcher.
        alone: Holds the GPU alone within a context.
        confinement: The barriers around the recorder.
        release: Is called when the session ends.
    """

    device_seconds = 0.0
    """A GPU does not say how long single calls take; see `time_calls`."""

    def __init__(
        self,
        task: Task,
        program: Program,
        memory: HostMemory,
        slot: LauncherSlot,
        alone: Exclusive,
        confinement: Mapping[str, object],
        release: Callable[[], None],
    ) -> None:
        self._task, self._program, self.memory = task, program, memory
        self._slot, self._alone, self._release = slot, alone, release
        self.confinement = confinement
        self._facts: dict[str, KernelFacts] = {}
        self._number = self._seed = 0

    @property
    def timed(self) -> GpuSession:
        """The session itself: its calls can be timed in blocks."""
        return self

    def load(self, source: str, language: str | None = None) -> Failed | None:
        """Builds and loads a source; the language "torch" is for the task's reference."""
        if language == TORCH:
            self._program.close()
            self._program = ReferenceProgram(self._task)
        return self._program.load(source)

    def compile(self, calls: Sequence[SketchedCall]) -> Failed | None:
        """Compiles what the calls need, and lets host code tune itself."""
        for dims, inputs in calls:
            failed = self._program.compile(inputs, dims, self._alone)
            if failed is not None:
                return failed
        return None

    def repeat(self, inputs: Mapping[str, Value], dims: Mapping[str, int]) -> Failed | None:
        """Records a call of one form again and again: its plan must stay the same."""
        try:
            return self._program.repeat(inputs, dims, self._seed, self._alone)
        except LauncherLostError as error:
            return self._failed(error)

    def sample_from(self, seed: int) -> None:
        """Keeps the seed, which draws how often a call is recorded again."""
        self._seed = seed

    def call(
        self,
        inputs: Mapping[str, Value],
        dims: Mapping[str, int],
        noop: bool = False,
        audit: Audit = Audit.OFF,
    ) -> Call | Failed:
        """Calls the source once on fresh copies of the inputs. A GPU has no audits."""
        loaded = self.select(inputs, dims)
        if isinstance(loaded, Failed):
            return loaded
        outputs = self._stated(loaded, dims)
        if any(isinstance(output, Wrong) for output in outputs):
            problems = (OutputTensor(None, o.problem) for o in outputs if isinstance(o, Wrong))
            return Call(tuple(problems), 0.0, 0 if noop else loaded.launches)
        tensors = {k: storage_bytes(v) for k, v in inputs.items() if isinstance(v, torch.Tensor)}
        begin, places = self._places(loaded, [data.numel() for data in tensors.values()])
        end = begin
        for data in tensors.values():
            end = self.memory.write(end, data)
        self.memory.settle()
        try:
            damaged = self._slot.process().execute(loaded.number, begin, places, noop)
        except (PlanFailedError, LauncherLostError) as error:
            return self._failed(error)
        if damaged is not None:
            text = f"a kernel wrote outside its buffers, next to buffer {damaged} of its plan"
            return Failed(FailureKind.RUNTIME, text)
        after = dict(zip(tensors, places[len(outputs) :], strict=True))
        return Call(
            outputs=tuple(self._outputs(loaded, places, dims, list(tensors))),
            seconds=0.0,
            launches=0 if noop else loaded.launches,
            modified_inputs=tuple(
                name
                for name, data in tensors.items()
                if name not in in_place_inputs(self._task)
                and not torch.equal(self.memory.read(after[name], data.numel()), data)
            ),
            refused=loaded.refused,
            plan=loaded.plan,
            plan_from="shapes" if loaded.plan else "",
        )

    def select(self, inputs: Mapping[str, Value], dims: Mapping[str, int]) -> LoadedCall | Failed:
        """Has the launcher load what calls of such a form do."""
        try:
            loaded = self._program.select(self._slot, inputs, dims)
        except LauncherLostError as error:
            return self._failed(error)
        if isinstance(loaded, LoadedCall):
            self._facts |= {kernel.name: kernel for kernel in loaded.facts}
            self._number = loaded.number
        return loaded

    def renew(self) -> None:
        """Takes another launcher for the next calls."""
        self._slot.renew()

    def beside(self, other: TimedSession) -> GpuSession | None:
        """Returns the same program in the launcher of another session."""
        if not self._program.is_plan or not isinstance(other, GpuSession):
            return None
        shared = self.memory, other._slot, self._alone, self.confinement
        return GpuSession(self._task, self._program, *shared, release=lambda: None)

    def time_calls(
        self, order: Sequence[TimedSession], call: TimedCall, graph: bool
    ) -> list[float] | Failed | None:
        """Times a call of each session in this one's launcher, see `TimedSession.time_calls`."""
        calls = []
        for session in order:
            assert isinstance(session, GpuSession)
            results = call.results if session is self else ()
            calls.append((session._number, call.inputs, *results))
        try:
            return self._slot.process().time(calls, graph)
        except NoGraphError:
            return None
        except (PlanFailedError, LauncherLostError) as error:
            return self._failed(error)

    def second_opinion(self) -> None:
        """Returns None: there is one compiler for a GPU."""

    def facts(self) -> tuple[KernelFacts, ...]:
        """Returns what the driver reports about the kernels that were loaded."""
        return tuple(self._facts.values())

    def close(self) -> None:
        """Ends the recorder and gives the launcher back."""
        self._program.close()
        self._release()

    def _places(self, loaded: LoadedCall, sizes: list[int]) -> tuple[int, list[int]]:
        """Returns where the inputs of a call begin, and where its results go behind them.

        Raises:
            WorkloadTooLargeError: They do not fit.
        """
        end = aligned(sum(sizes))
        places = []
        for size in (*loaded.result_sizes, *sizes):
            places.append(end)
            end = aligned(end + size)
        begin = self.memory.begin(end)
        if begin == 0 and end > self.memory.size:
            text = f"a workload does not fit: {end} bytes of {self.memory.size} shared ones"
            raise WorkloadTooLargeError(text)
        return begin, [begin + place for place in places]

    def _stated(
        self, loaded: LoadedCall, dims: Mapping[str, int]
    ) -> tuple[PlacedOutput | Wrong, ...]:
        """Compares the outputs of a plan with those that the task states."""
        with reading_an_answer():
            stated = stated_outputs(self._task.problem, dims)
            return parse_call({"outputs": [_described(o) for o in loaded.outputs]}, stated).outputs

    def _outputs(
        self,
        loaded: LoadedCall,
        places: Sequence[int],
        dims: Mapping[str, int],
        names: Sequence[str],
    ) -> Iterator[OutputTensor]:
        """Reads outputs, which have the form that the task states."""
        stated = stated_outputs(self._task.problem, dims)
        for number, (expected, place) in enumerate(zip(stated, places, strict=False)):
            alias = names[loaded.aliases[number]] if number in loaded.aliases else ""
            if expected.place and alias != expected.place:
                yield OutputTensor(None, misplaced_text(expected.place))
            elif alias and alias not in in_place_inputs(self._task):
                text = f"found a view of the input {alias!r}, expected a tensor of its own"
                yield OutputTensor(None, text)
            else:
                data = self.memory.read(place, expected.nbytes)
                yield OutputTensor(data.view(expected.dtype).view(expected.shape))

    def _failed(self, error: Exception) -> Failed:
        """Returns the candidate's failure.

        Raises:
            DeviceLostError: The launcher has ended, and who caused it is not known.
        """
        if isinstance(error, LauncherLostError):
            raise DeviceLostError(str(error)) from error
        late = isinstance(error, PlanTimeoutError)
        return Failed(FailureKind.TIMEOUT if late else FailureKind.RUNTIME, str(error))


def _described(output: BufferView | WrongOutput) -> dict[str, object]:
    if isinstance(output, WrongOutput):
        return {"wrong": output.text}
    form = {"shape": list(output.shape), "strides": list(output.strides), "dtype": output.dtype}
    return {"address": output.offset, **form}
