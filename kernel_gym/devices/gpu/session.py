"""One candidate in one worker on a real GPU, seen from the judge."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import torch

from kernel_gym.devices.answers import BadAnswerError, parse_facts, parse_failure
from kernel_gym.devices.base import (
    Audit,
    Call,
    DeviceLostError,
    Failed,
    FailureKind,
    InfraError,
    MemoryUsedUpError,
    SketchedCall,
)
from kernel_gym.devices.budget import HostBudget
from kernel_gym.devices.gpu.arena import GUARD, ArenaFull, Piece
from kernel_gym.devices.gpu.blocks import Block, Places, copy_outputs, read_block, read_places
from kernel_gym.devices.gpu.build import GpuCompiler
from kernel_gym.devices.gpu.host import Host
from kernel_gym.devices.gpu.outputs import read_call
from kernel_gym.devices.gpu.placement import Placed, arguments, place
from kernel_gym.devices.gpu.turns import Turns
from kernel_gym.devices.gpu.worker import Worker, ask
from kernel_gym.protocol import worker as messages
from kernel_gym.protocol.request import Request
from kernel_gym.records import KernelFacts
from kernel_gym.sandbox.pause import NotStoppedError
from kernel_gym.tasks.problem import Value
from kernel_gym.tasks.task import Task

OPEN_TIMEOUT = 60.0
LOAD_TIMEOUT = 90.0
FIRST_TIMEOUT = 45.0
"""For one call's kernels, all configurations of autotuned ones included."""
CALL_TIMEOUT = 15.0
"""A kernel that hangs has the GPU for so long."""
CROWDED_BYTES = 4 << 30
"""Less free memory than this is too little for one more worker."""


class GpuSession:
    """One candidate or baseline in one worker.

    Args:
        task: what it solves.
        worker: where it runs.
        host: the GPU's side.
        release: takes the worker when the session ends and the worker is still well.
    """

    def __init__(
        self, task: Task, worker: Worker, host: Host, release: Callable[[Worker], None]
    ) -> None:
        self.arena = host.arena
        self.replayed = False
        """Whether the ring's calls were captured as a graph."""
        self._task, self._worker, self._host, self._release = task, worker, host, release
        self._budget = None if worker.ours else HostBudget()
        self._language = task.language
        self._dead: Failed | None = None
        self._changed: list[Piece] = []
        self.turns = Turns(worker.child, host.arena)
        self._places = Places()
        self.confinement = worker.ready()

    def rehearse(self, source: str, calls: Sequence[SketchedCall]) -> Failed | None:
        """Compiles a Triton candidate for such calls, while the worker has no GPU context yet.

        Whatever else goes wrong is left for `load` to find.
        """
        if self._task.language != "triton":
            return None
        sketched = [self._sketch(*call) for call in calls]
        first = messages.Precompile(
            self._task.entry, source, dict(self._host.reported), sketched[:1]
        )
        rest = replace(first, calls=sketched[1:])
        return self._failure(first, FIRST_TIMEOUT) or self._failure(rest, LOAD_TIMEOUT)

    def load(self, source: str, language: str | None = None) -> Failed | None:
        """Builds and loads the candidate; the language "torch" is for the task's reference."""
        self._language = language or self._task.language
        request = messages.LoadOnGpu(self._language, self._task.entry, source)
        if self._language != "hip":
            return self.open() or self._failure(request, LOAD_TIMEOUT)
        vendor, family = self._host.vendor, self._worker.family
        compiler = GpuCompiler(vendor, self._host.arch, self._worker.cache, LOAD_TIMEOUT, family)
        built = compiler.build(source, self._budget)  # needs no GPU
        if isinstance(built, Failed):
            return built
        first = len(self._task.problem.args)
        outputs = [*range(first, first + len(self._task.problem.outputs))]
        request = replace(request, outputs=outputs, log=built.log, library=built.content)
        return self._failure(request, LOAD_TIMEOUT) or self.open()

    def open(self) -> Failed | None:
        """Lets the worker make its GPU context.

        Raises:
            InfraError: it cannot.
        """
        if self._worker.opened:
            return None
        failed = self._failure(messages.OpenGpu(), OPEN_TIMEOUT)
        self._worker.opened = failed is None
        return failed

    def compile(self, calls: Sequence[SketchedCall]) -> Failed | None:
        """Compiles what calls of such dimensions and inputs need; their values do not matter."""
        if self._language != "triton":
            return None
        request = messages.CompileCalls([self._sketch(*call) for call in calls])
        return self._failure(request, LOAD_TIMEOUT)

    def _sketch(
        self, dims: Mapping[str, int], inputs: Mapping[str, Value]
    ) -> messages.ArenaArguments:
        """Arguments that all lie at one place: nothing reads them."""
        pieces = {
            name: Piece(GUARD, value.untyped_storage().nbytes(), name)
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
    ) -> Call | Failed:
        """Calls the candidate once on fresh copies of the inputs; a GPU cannot be audited."""
        if self._dead:
            return self._dead
        self.arena.reset()
        placed = self._place(inputs, dims)
        if isinstance(placed, Failed):
            return placed
        everything = (self.arena.everything,)
        outputs = () if self._language == "hip" else placed.outputs
        request = messages.CallOnGpu(
            self._arguments(placed, dims), _ranges(outputs), [p.size for p in outputs], noop
        )
        answer = self._ask(request, CALL_TIMEOUT, shown=everything, wanted=everything)
        if isinstance(answer, Failed):
            return answer
        damaged = self.arena.damaged()
        if damaged:
            return Failed(
                FailureKind.RUNTIME, f"a kernel wrote outside its buffers, next to {damaged}"
            )
        try:
            return read_call(self.arena, self._task, answer, placed, dims)
        except BadAnswerError as error:
            return self._fail(Failed(FailureKind.RUNTIME, str(error)))

    def facts(self) -> tuple[KernelFacts, ...]:
        """What the compiler made of the kernels."""
        return self._facts(messages.ReadGpuFacts())

    def cross_facts(self, arch: str) -> tuple[KernelFacts, ...]:
        """What Triton's compiler for an AMD architecture makes of them."""
        return self._facts(messages.CrossCompile(arch))

    def evict(self) -> int:
        """Ends the worker in the middle of its session; bytes of the GPU that come free."""
        before = torch.cuda.mem_get_info()[0]
        self._fail(Failed(FailureKind.RUNTIME, "the GPU's memory is used up"))
        return torch.cuda.mem_get_info()[0] - before

    def close(self) -> None:
        """Ends the session."""
        if self._dead is None:
            self._release(self._worker)
        else:
            self._worker.close()

    # -- timing: see judge/pairs.py -----------------------------------------------------------

    def ring(self, sets: Sequence[Placed], dims: Mapping[str, int]) -> Failed | None:
        """Hands the worker the argument sets of timed calls, and lets it warm up on them."""
        outputs = () if self._language == "hip" else sets[0].outputs
        request = messages.UseInputs(
            [self._arguments(placed, dims) for placed in sets], [p.size for p in outputs]
        )
        self.replayed = False
        return self._failure(request, CALL_TIMEOUT, shown=(self.arena.everything,))

    def changed(self, pieces: Iterable[Piece]) -> None:
        """Notes what the judge has written into the ring, for the next block."""
        self._changed.extend(pieces)

    def block(self, count: int, lead: int) -> Block | Failed:
        """`count` timed calls with cold caches, after `lead` flushes."""
        return self._timed(messages.TimeCalls(count, lead))

    def capture(self) -> Failed | None:
        """Makes one graph of a round over the ring."""
        answer = self._ask(messages.CaptureGraph(), CALL_TIMEOUT)
        if isinstance(answer, Failed):
            return answer
        self._places, self.replayed = read_places(answer), True
        return None

    def replay(self, count: int) -> Block | Failed:
        """`count` timed replays of the graph, each with cold caches."""
        return self._timed(messages.TimeReplays(count))

    def move(self) -> None:
        """Has the worker go on on another processor, whose core may have fewer other users."""
        self._failure(messages.ChangeCpu(), CALL_TIMEOUT)  # to stay is no failure

    def poison(self, sets: Sequence[Placed]) -> None:
        """Overwrites what timed calls write into the arena itself: those of HIP candidates."""
        if self._language == "hip":
            outputs = [piece for placed in sets for piece in placed.outputs]
            self.arena.poison(outputs)
            self.changed(outputs)

    def read(self, call: int, calls: int, placed: Placed) -> Failed | None:
        """Fetches the outputs of one of the last timed calls into a set.

        The judge reads them itself, while the worker is stopped. Only where memory is not shared by
        handle the worker is asked for them.

        Args:
            call: which.
            calls: how many there were.
            placed: the set.
        """
        if self.arena.file is not None:
            return self._deliver(calls - 1 - call, placed)
        if self._language == "hip":  # written there by the candidate itself
            return None
        if copy_outputs(self.arena, self._places, call, placed.outputs):
            return None
        text = "the outputs of a timed call are not where they were"
        return self._fail(Failed(FailureKind.RUNTIME, text))

    def _deliver(self, back: int, placed: Placed) -> Failed | None:
        """Has the worker copy outputs, of a call counted backwards."""
        if self._language == "hip":  # written there by the candidate itself
            request = messages.CopyOutputs([], [])
            return self._failure(request, CALL_TIMEOUT, wanted=placed.outputs)
        self.arena.poison(placed.outputs)
        request, shown = messages.CopyOutputs([back], [_ranges(placed.outputs)]), placed.outputs
        return self._failure(request, CALL_TIMEOUT, shown=shown, wanted=placed.outputs)

    def rest(self) -> None:
        """Gives back the memory of the ring; the worker may hold it until the next evaluation."""
        self._ask(messages.ReleaseMemory(), CALL_TIMEOUT)

    def _timed(self, request: messages.TimeCalls | messages.TimeReplays) -> Block | Failed:
        """Runs a block; its wall-clock time ends when the GPU has no more work of the worker."""
        shown, self._changed = self._changed, []
        failed = self._failure(messages.CopyArena(), CALL_TIMEOUT, shown, go_on=True)
        if failed is not None:
            return failed
        torch.cuda.synchronize()
        start = time.perf_counter()
        answer = self._ask(request, CALL_TIMEOUT)
        if isinstance(answer, Failed):
            return answer
        block = read_block(answer, request.count, self.turns.ended - start, CALL_TIMEOUT)
        if block is None:
            return self._fail(Failed(FailureKind.RUNTIME, "the worker broke the protocol"))
        if isinstance(request, messages.TimeCalls):
            self._places = read_places(answer)
        return block

    def _place(self, inputs: Mapping[str, Value], dims: Mapping[str, int]) -> Placed | Failed:
        try:
            return place(self.arena, self._task, inputs, dims)
        except ArenaFull as error:
            raise InfraError(f"a workload does not fit: {error}") from error

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
        shown: Sequence[Piece] = (),
        wanted: Sequence[Piece] = (),
        go_on: bool = False,
    ) -> Failed | None:
        answer = self._ask(request, timeout, shown, wanted, go_on)
        return answer if isinstance(answer, Failed) else None

    def _ask(
        self,
        request: Request,
        timeout: float,
        shown: Sequence[Piece] = (),
        wanted: Sequence[Piece] = (),
        go_on: bool = False,
    ) -> dict[str, Any] | Failed:
        """The worker's answer; it sees the pieces `shown` first, the judge those `wanted` then.

        While turns are taken its processes are stopped afterwards, unless they are to go on.
        """
        if self._dead:
            return self._dead
        if shown:
            self.arena.publish(shown)
        shared = self.arena.file is None
        copies = None if shared else messages.ArenaCopies(_ranges(shown), _ranges(wanted))
        answer = self._request(request, timeout, go_on, copies)
        if isinstance(answer, Failed):
            return answer
        if "error" not in answer:
            self.arena.fetch(wanted)
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
        """One message and its answer."""
        try:
            self.turns.begin()
            answer = ask(self._worker, request, timeout, copies, self._budget)
            if not isinstance(answer, Failed):
                self.turns.end(go_on)
        except NotStoppedError as error:
            answer = Failed(FailureKind.RUNTIME, str(error))
        return self._fail(answer) if isinstance(answer, Failed) else answer

    def _blame(self, text: str) -> NoReturn:
        """Raises what a worker that cannot use the GPU means, after its end.

        Raises:
            MemoryUsedUpError: nothing is left for a source of ours.
            InfraError: the GPU is full although the worker is gone, or ours cannot use it.
            DeviceLostError: whose doing it was is not known: theirs with whom it happens again.
        """
        if self._worker.ours:
            found = MemoryUsedUpError if "out of memory" in text else InfraError
            raise found(f"a baseline cannot use the GPU; run fewer evaluators on it ({text})")
        if torch.cuda.mem_get_info()[0] < CROWDED_BYTES:
            raise InfraError(f"the GPU's memory is full; run fewer evaluators on it ({text})")
        raise DeviceLostError(f"a worker cannot use the GPU: {text}")

    def _fail(self, failed: Failed) -> Failed:
        """Remembers a failure after which the worker cannot be asked again."""
        self._dead = failed
        self._worker.close()  # a kernel that hangs would hold the GPU
        return failed


def _ranges(pieces: Iterable[Piece]) -> messages.Ranges:
    """Start and size of parts of the arena, for messages."""
    return [[piece.start, piece.size] for piece in pieces]
