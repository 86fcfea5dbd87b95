"""One candidate in one worker on a real GPU, seen from the judge."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, NoReturn

import torch

from kernel_gym.devices.answers import (
    BadAnswerError,
    believed_outputs,
    parse_facts,
    parse_failure,
    reading_an_answer,
)
from kernel_gym.devices.base import (
    Audit,
    Call,
    DeviceLostError,
    Failed,
    FailureKind,
    InfraError,
    MemoryUsedUpError,
    SketchedCall,
    TimedBlock,
    WorkloadTooLargeError,
)
from kernel_gym.devices.budget import HostBudget
from kernel_gym.devices.gpu.alternation import Alternation
from kernel_gym.devices.gpu.arena import GUARD, GpuArena
from kernel_gym.devices.gpu.blocks import Places, copy_outputs, read_block, read_places
from kernel_gym.devices.gpu.build import GpuCompiler
from kernel_gym.devices.gpu.host import Host
from kernel_gym.devices.gpu.outputs import read_call
from kernel_gym.devices.gpu.worker import GpuWorkerProcess, ask
from kernel_gym.devices.hip_build import launcher_outputs
from kernel_gym.devices.placement import ArenaPiece, MemoryFullError, Placed, arguments, place
from kernel_gym.protocol import worker as messages
from kernel_gym.protocol.request import Request
from kernel_gym.records import KernelFacts
from kernel_gym.sandbox.pause import NotStoppedError
from kernel_gym.tasks.problem import Value
from kernel_gym.tasks.task import Task

OPEN_TIMEOUT = 60.0
LOAD_TIMEOUT = 90.0
FIRST_TIMEOUT = 45.0
"""Seconds to compile the kernels of one call, with all configurations of autotuned kernels."""
CALL_TIMEOUT = 15.0
"""Seconds. A kernel that hangs holds the GPU for this long."""
CROWDED_BYTES = 4 << 30
"""One more worker does not fit if less memory is free."""


class GpuSession:
    """One candidate or baseline in one worker.

    Args:
        task: What the source solves.
        worker: The worker process.
        host: What the sessions on one GPU share.
        release: Takes the worker back if it is still healthy when the session ends.
        resident: Whether the source is a suite's own code: it has no budget of seconds.
    """

    device_seconds = 0.0
    """A GPU does not say how long single calls take; see `time_calls`."""

    def __init__(
        self,
        task: Task,
        worker: GpuWorkerProcess,
        host: Host,
        release: Callable[[GpuWorkerProcess], None],
        resident: bool = False,
    ) -> None:
        self.memory: GpuArena = host.arena
        self._task, self._worker, self._host, self._release = task, worker, host, release
        self._budget = None if worker.trusted or resident else HostBudget()
        # The functions of suites compile and tune at their first calls.
        self._patience = FIRST_TIMEOUT if task.problem.recorded else CALL_TIMEOUT
        self._language = task.language
        self._dead: Failed | None = None
        self._changed: list[ArenaPiece] = []
        self._alternation = Alternation(worker.child, host.arena)
        self._places = Places()
        self.confinement = worker.ready()

    @property
    def timed(self) -> GpuSession:
        """The session itself: its calls can be timed in blocks."""
        return self

    def precompile(self, source: str, calls: Sequence[SketchedCall]) -> Failed | None:
        """Compiles a Triton candidate for such calls before the worker has a GPU context.

        Only failures of the compiler count here. All others are left to `load`.
        """
        if self._task.language != "triton" or self._task.problem.recorded:
            return None
        sketched = [self._sketch(*call) for call in calls]
        first = messages.Precompile(
            self._task.entry, source, dict(self._host.reported), sketched[:1]
        )
        rest = replace(first, calls=sketched[1:])
        return self._failure(first, FIRST_TIMEOUT) or self._failure(rest, LOAD_TIMEOUT)

    def load(self, source: str, language: str | None = None) -> Failed | None:
        """Builds and loads a source; the language "torch" is for the task's reference."""
        self._language = language or self._task.language
        request = messages.LoadOnGpu(self._language, self._task.entry, source)
        if self._language != "hip":
            return self.open() or self._failure(request, LOAD_TIMEOUT)
        vendor, family = self._host.vendor, self._worker.family
        compiler = GpuCompiler(vendor, self._host.arch, self._worker.cache, LOAD_TIMEOUT, family)
        built = compiler.build(source, self._budget)  # needs no GPU
        if isinstance(built, Failed):
            return built
        outputs = launcher_outputs(self._task.problem)
        request = replace(request, outputs=outputs, log=built.log, library=built.content)
        return self._failure(request, LOAD_TIMEOUT) or self.open()

    def open(self) -> Failed | None:
        """Has the worker create its GPU context.

        Raises:
            InfraError: The worker cannot create it.
        """
        if self._worker.opened:
            return None
        failed = self._failure(messages.OpenGpu(), OPEN_TIMEOUT)
        self._worker.opened = failed is None
        return failed

    def compile(self, calls: Sequence[SketchedCall]) -> Failed | None:
        """Compiles the kernels for calls with such dimensions and inputs; values do not matter."""
        if self._language != "triton" or self._task.problem.recorded:
            return None
        request = messages.CompileCalls([self._sketch(*call) for call in calls])
        return self._failure(request, LOAD_TIMEOUT)

    def _sketch(
        self, dims: Mapping[str, int], inputs: Mapping[str, Value]
    ) -> messages.ArenaArguments:
        """Describes arguments that share one address, because nothing reads them."""
        pieces = {
            name: ArenaPiece(GUARD, value.untyped_storage().nbytes(), name)
            for name, value in inputs.items()
            if isinstance(value, torch.Tensor)
        }
        return self._arguments(Placed(inputs, pieces, ()), dims)

    def call(
        self,
        inputs: Mapping[str, Value],
        dims: Mapping[str, int],
        noop: bool = False,
        audit: Audit = Audit.OFF,
        believed: bool = False,
    ) -> Call | Failed:
        """Calls the candidate once on fresh copies of the inputs. A GPU has no audits.

        With `believed`, the outputs are those that the worker states: of a suite's own code only,
        before its task is known.
        """
        if self._dead:
            return self._dead
        self.memory.reset()
        placed = self._place(inputs, dims, outputs=not believed)
        everything = (self.memory.everything,)
        outputs = () if self._language == "hip" else placed.outputs
        request = messages.CallOnGpu(
            self._arguments(placed, dims), _ranges(outputs), [p.size for p in outputs], noop
        )
        answer = self._ask(request, self._patience, shown=everything, wanted=everything)
        if isinstance(answer, Failed):
            return answer
        try:
            placed = self._fetched(answer, placed) if believed else placed
        except BadAnswerError as error:
            return self._fail(Failed(FailureKind.RUNTIME, str(error)))
        if self._dead:
            return self._dead
        damaged = self.memory.damaged()
        if damaged:
            return Failed(
                FailureKind.RUNTIME, f"a kernel wrote outside its buffers, next to {damaged}"
            )
        try:
            return read_call(self.memory, self._task, answer, placed, dims, believed)
        except BadAnswerError as error:
            return self._fail(Failed(FailureKind.RUNTIME, str(error)))

    def _fetched(self, answer: Mapping[str, Any], placed: Placed) -> Placed:
        """Has the worker copy the outputs of its last call, as it states them, into the arena.

        Raises:
            BadAnswerError: It states no outputs.
            InfraError: They do not fit.
        """
        with reading_an_answer():
            stated = believed_outputs(answer)
        try:
            pieces = [self.memory.take(one.nbytes, f"output {one.name!r}") for one in stated]
        except MemoryFullError as error:
            raise WorkloadTooLargeError(f"a workload does not fit: {error}") from error
        everything = (self.memory.everything,)
        request = messages.CopyOutputs([0], [_ranges(pieces)])
        self._failure(request, CALL_TIMEOUT, shown=everything, wanted=everything)
        return replace(placed, outputs=tuple(pieces))

    def facts(self) -> tuple[KernelFacts, ...]:
        """Returns what the compiler reported about the kernels."""
        return self._facts(messages.ReadGpuFacts())

    def cross_facts(self, arch: str) -> tuple[KernelFacts, ...]:
        """Returns what Triton's compiler reports for an AMD architecture."""
        return self._facts(messages.CrossCompile(arch))

    def evict(self) -> int:
        """Ends the worker during its session. Returns the bytes of GPU memory that this frees."""
        before = torch.cuda.mem_get_info()[0]
        self._fail(Failed(FailureKind.RUNTIME, "the GPU's memory is used up"))
        return torch.cuda.mem_get_info()[0] - before

    def close(self) -> None:
        """Ends the session. A healthy worker is released, another one ends."""
        if self._dead is None:
            self._release(self._worker)
        else:
            self._worker.close()

    # -- timing: see judge/timing/paired.py ----------------------------------------------------

    def paused_between_requests(self) -> AbstractContextManager[None]:
        """Within the context, the worker's processes are stopped between two requests."""
        return self._alternation.paused_between_requests()

    def load_pool(self, sets: Sequence[Placed], dims: Mapping[str, int]) -> Failed | None:
        """Sends the argument sets of timed calls to the worker, which warms up on them."""
        outputs = () if self._language == "hip" else sets[0].outputs
        request = messages.UseInputs(
            [self._arguments(placed, dims) for placed in sets], [p.size for p in outputs]
        )
        return self._failure(request, self._patience, shown=(self.memory.everything,))

    def mark_changed(self, pieces: Iterable[ArenaPiece]) -> None:
        """Notes memory that the judge has written, so that the worker sees it in the next block."""
        self._changed.extend(pieces)

    def time_calls(self, count: int, lead: int) -> TimedBlock | Failed:
        """Times `count` calls with cold caches, after `lead` cache flushes."""
        return self._timed(messages.TimeCalls(count, lead), count)

    def capture_graph(self) -> Failed | None:
        """Captures one call for each input set of the pool as a graph."""
        answer = self._ask(messages.CaptureGraph(), CALL_TIMEOUT)
        if isinstance(answer, Failed):
            return answer
        self._places = read_places(answer)
        return None

    def replay_graph(self, lead: int) -> TimedBlock | Failed:
        """Times one replay of the graph with cold caches, after `lead` more cache flushes."""
        return self._timed(messages.TimeReplay(lead), 1)

    def move_to_other_cpu(self) -> None:
        """Moves the worker to another CPU, whose core may have fewer other users."""
        self._failure(messages.ChangeCpu(), CALL_TIMEOUT)  # it is no failure if the worker stays

    def poison_outputs(self, sets: Sequence[Placed]) -> None:
        """Overwrites the outputs in the shared memory. Only HIP candidates write them there."""
        if self._language == "hip":
            outputs = [piece for placed in sets for piece in placed.outputs]
            self.memory.poison(outputs)
            self.mark_changed(outputs)

    def read_outputs(self, call: int, calls: int, placed: Placed) -> Failed | None:
        """Copies the outputs of one of the last `calls` timed calls into the outputs of a set.

        The judge reads them itself while the worker is stopped. It asks the worker only where
        memory cannot be shared by handle.
        """
        if not self.memory.coherent:
            return self._read_back(calls - 1 - call, placed)
        if self._language == "hip":  # the candidate itself has written them there
            return None
        if copy_outputs(self.memory, self._places, call, placed.outputs):
            return None
        text = "the outputs of a timed call are not where they were"
        return self._fail(Failed(FailureKind.RUNTIME, text))

    def _read_back(self, back: int, placed: Placed) -> Failed | None:
        """Has the worker copy the outputs of a call; calls are counted from the last one."""
        if self._language == "hip":  # written there by the candidate itself
            request = messages.CopyOutputs([], [])
            return self._failure(request, CALL_TIMEOUT, wanted=placed.outputs)
        self.memory.poison(placed.outputs)
        request, shown = messages.CopyOutputs([back], [_ranges(placed.outputs)]), placed.outputs
        return self._failure(request, CALL_TIMEOUT, shown=shown, wanted=placed.outputs)

    def release_pool(self) -> None:
        """Frees the memory of the pool, as the worker may stay until the next evaluation."""
        self._ask(messages.ReleaseMemory(), CALL_TIMEOUT)

    def _timed(
        self, request: messages.TimeCalls | messages.TimeReplay, stamps: int
    ) -> TimedBlock | Failed:
        """Runs a block. Its wall time ends when the GPU has no more work of the worker."""
        shown, self._changed = self._changed, []
        failed = self._failure(messages.CopyArena(), CALL_TIMEOUT, shown, go_on=True)
        if failed is not None:
            return failed
        torch.cuda.synchronize()
        start = time.perf_counter()
        answer = self._ask(request, CALL_TIMEOUT)
        if isinstance(answer, Failed):
            return answer
        wall = self._alternation.ended - start
        block = read_block(answer, stamps, wall, CALL_TIMEOUT)
        if block is None:
            return self._fail(Failed(FailureKind.RUNTIME, "the worker broke the protocol"))
        if isinstance(request, messages.TimeCalls):
            self._places = read_places(answer)
        return block

    def _place(self, inputs: Mapping[str, Value], dims: Mapping[str, int], outputs: bool) -> Placed:
        try:
            return place(self.memory, self._task, inputs, dims, outputs=outputs)
        except MemoryFullError as error:
            raise WorkloadTooLargeError(f"a workload does not fit: {error}") from error

    def _arguments(self, placed: Placed, dims: Mapping[str, int]) -> messages.ArenaArguments:
        return arguments(self._task.problem, placed, dims, self._language == "hip")

    # -- the pipe ------------------------------------------------------------------------------

    def _facts(self, request: Request) -> tuple[KernelFacts, ...]:
        answer = self._ask(request, LOAD_TIMEOUT) if self._dead is None else self._dead
        if isinstance(answer, Failed):
            return ()
        return parse_facts(answer)

    def _failure(
        self,
        request: Request,
        timeout: float,
        shown: Sequence[ArenaPiece] = (),
        wanted: Sequence[ArenaPiece] = (),
        go_on: bool = False,
    ) -> Failed | None:
        answer = self._ask(request, timeout, shown, wanted, go_on)
        return answer if isinstance(answer, Failed) else None

    def _ask(
        self,
        request: Request,
        timeout: float,
        shown: Sequence[ArenaPiece] = (),
        wanted: Sequence[ArenaPiece] = (),
        go_on: bool = False,
    ) -> dict[str, Any] | Failed:
        """Sends a request and returns the worker's answer.

        Args:
            request: The request.
            timeout: Seconds until an answer.
            shown: Memory that the worker must see before the request.
            wanted: Memory that the judge must see after the answer.
            go_on: Do not stop the worker afterwards, because another request follows at once.

        Raises:
            InfraError: The worker cannot use the GPU, see `_blame`.
        """
        if self._dead:
            return self._dead
        if shown:
            self.memory.publish(shown)
        shared = self.memory.coherent
        copies = None if shared else messages.ArenaCopies(_ranges(shown), _ranges(wanted))
        answer = self._request(request, timeout, go_on, copies)
        if isinstance(answer, Failed):
            return answer
        if "error" not in answer:
            self.memory.fetch(wanted)
            return answer
        failed = parse_failure(answer["error"])
        builds = isinstance(request, messages.LoadOnGpu | messages.Precompile)
        opens = isinstance(request, messages.OpenGpu)
        if opens or ("out of memory" in failed.message and not builds):
            self._fail(failed)
            self._blame(failed.message[:200])
        lost = "CUDA error" in failed.message or "HIP error" in failed.message
        captures = isinstance(request, messages.CaptureGraph)
        return self._fail(failed) if lost and not captures else failed

    def _request(
        self,
        request: Request,
        timeout: float,
        go_on: bool,
        copies: messages.ArenaCopies | None,
    ) -> dict[str, Any] | Failed:
        """Sends one message and returns the answer."""
        try:
            self._alternation.begin()
            answer = ask(self._worker, request, timeout, copies, self._budget)
            if not isinstance(answer, Failed):
                self._alternation.end(go_on)
        except NotStoppedError as error:
            answer = Failed(FailureKind.RUNTIME, str(error))
        except InfraError as error:
            self._fail(Failed(FailureKind.RUNTIME, str(error)))
            raise
        return self._fail(answer) if isinstance(answer, Failed) else answer

    def _blame(self, text: str) -> NoReturn:
        """Raises the error for a worker that could not use the GPU. The worker has ended before.

        Raises:
            MemoryUsedUpError: A trusted source got no memory.
            InfraError: The GPU is full although the worker has ended, or a trusted source cannot
                use it.
            DeviceLostError: The cause is unknown. If it happens again on retry, the candidate is
                blamed.
        """
        if self._worker.trusted:
            error = MemoryUsedUpError if "out of memory" in text else InfraError
            raise error(f"a baseline cannot use the GPU; run fewer evaluators on it ({text})")
        if torch.cuda.mem_get_info()[0] < CROWDED_BYTES:
            raise InfraError(f"the GPU's memory is full; run fewer evaluators on it ({text})")
        raise DeviceLostError(f"a worker cannot use the GPU: {text}")

    def _fail(self, failed: Failed) -> Failed:
        """Records a failure after which the worker cannot be used."""
        self._dead = failed
        self._worker.close()  # a kernel that hangs would hold the GPU
        return failed


def _ranges(pieces: Iterable[ArenaPiece]) -> messages.Ranges:
    """Start and size of parts of the arena, for messages."""
    return [[piece.start, piece.size] for piece in pieces]
