"""The main loop of a worker on a real GPU: load one candidate, call it, time blocks of calls.

The judge checks the times that this process reports against its own clock. The judge compares
values in its own process and from its own memory.
"""

from __future__ import annotations

import collections
import ctypes
import os
import socket
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from itertools import chain, pairwise
from typing import Any

import torch

from kernel_gym.devices.operators import Operators
from kernel_gym.protocol import worker as messages
from kernel_gym.protocol.request import RequestDispatcher
from kernel_gym.protocol.worker import ArenaArguments, ArenaCopies, Ranges
from kernel_gym.sandbox import confine, failures
from kernel_gym.sandbox.channel import BLOCK_SPIN, Channel
from kernel_gym.worker import preload as warm
from kernel_gym.worker.gpu.free_memory import poison_free_memory
from kernel_gym.worker.gpu.library_gate import take_kernels_away
from kernel_gym.worker.gpu.memory import Exports

Candidate = Callable[..., Any]


def main(fds: list[int], options: dict[str, Any]) -> None:
    """Serves the judge over the first descriptor; the second, if any, is the shared host memory."""
    torch.set_num_threads(1)
    confine.forbid_inspection()
    judge = Channel(socket.socket(fileno=fds[0]), buffers=1)
    session = GpuWorker(options, fds[1] if len(fds) > 1 else None)
    judge.send({"confinement": options["confinement"]})
    while True:
        message = judge.recv(spin=BLOCK_SPIN)
        judge.send(session.answer(message.header, message.buffers))


class GpuWorker:
    """One candidate on the worker's only visible GPU, or one baseline after another.

    Args:
        options: `trusted` (whether it runs only the project's own sources), `operators` (those of
            PyTorch that a source may run, see `kernel_gym.devices.operators`), `permitted` (their
            names), `handle` and `size` of the arena, and `flush` (bytes to write to make caches
            cold).
        file: Descriptor of the shared file, where GPU memory cannot be shared; else None.
    """

    def __init__(self, options: dict[str, Any], file: int | None) -> None:
        from kernel_gym.worker.gpu.gate import GateMode
        from kernel_gym.worker.gpu.launches import Launches, watch_tuning
        from kernel_gym.worker.gpu.memory import WorkerArena
        from kernel_gym.worker.gpu.recorder import GraphRecorder

        warm.seed_cache()
        operators = Operators(options.get("operators", Operators.NONE))
        permitted = frozenset(options.get("permitted", ()))
        if not (options["trusted"] or operators is Operators.ALL):
            take_kernels_away(permitted=permitted)
        self.of_suite = operators is Operators.ALL
        self.options, self.file = options, file
        self.arena: WorkerArena
        self.flush: torch.Tensor
        self.recorder: GraphRecorder | None = None
        self.gate = GateMode(operators, permitted)
        self.gated = True
        self.launches = Launches()
        watch_tuning()
        self.candidate: Candidate | None = None
        self.hip: Any = None
        self.input_sets: list[list[Any]] = []
        self.returned: collections.deque[tuple[Any, ...]] = collections.deque()
        self.captured: list[tuple[Any, ...]] = []
        self.graph: torch.cuda.CUDAGraph | None = None
        self.poisoning: torch.cuda.CUDAGraph | None = None
        self.events: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []

    def answer(self, header: dict[str, Any], buffers: Sequence[bytes] = ()) -> dict[str, Any]:
        """Answers a request of the judge; a failure becomes `{"error": {...}}`."""
        try:
            copies = ArenaCopies.taken_from(header)
            for start, size in copies.before:
                self.arena.copy_in(start, size)
            answer = REQUESTS.answer(self, header, buffers)
            for start, size in copies.after:
                self.arena.copy_out(start, size)
            return answer
        except BaseException as error:  # a candidate may raise anything, SystemExit included
            return {"error": failures.describe(error)}

    def open(self) -> dict[str, Any]:
        """Makes the GPU context, opens the arena and allocates memory.

        It also runs each torch kernel that timed calls need. Torch loads a kernel at its first
        call, and later the GPU may be locked for a comparison.
        """
        from kernel_gym.worker.gpu.memory import open_arena
        from kernel_gym.worker.gpu.recorder import GraphRecorder

        torch.cuda.init()
        self.arena = open_arena(self.options["handle"], self.options["size"], self.file)
        self.flush = torch.zeros(self.options["flush"] // 4, dtype=torch.int32, device="cuda")
        self.recorder = GraphRecorder()
        graph, _ = self.recorder.record(lambda: _fill(self.flush))
        graph.replay()
        self._flush()
        self._poison([1], 1)
        self.launches.watch_triton()
        torch.cuda.synchronize()
        return {}

    def precompile(self, **candidate: Any) -> dict[str, Any]:
        """Compiles a Triton candidate before there is a GPU context."""
        from kernel_gym.worker.gpu.precompile import precompile

        failure = precompile(**candidate)
        return {"error": failure} if failure else {}

    def load(
        self,
        language: str,
        entry: str,
        source: str,
        outputs: Sequence[int],
        log: str,
        library: bytes,
    ) -> dict[str, Any]:
        """Builds and loads a candidate. The language "torch" is for references and is ungated."""
        self.release()
        self.launches.forget()
        self.hip = None
        if language == "hip":
            from kernel_gym.worker.hip import gpu as hip_gpu

            self.hip = hip_gpu.load(library, entry, outputs, log)
            self.launches.watch_library(self.hip.library)
            self.candidate, self.gated = self.hip, True
            return {}
        from kernel_gym.worker import triton_module

        self.gated = language == "triton"
        with self._mode():
            self.candidate = triton_module.load(source, entry)
        return {}

    def compile(self, calls: list[ArenaArguments]) -> dict[str, Any]:
        """Compiles what the calls need, without running it."""
        from kernel_gym.worker.gpu.launches import without_tuning

        self.launches.start(noop=True)
        with without_tuning():
            for args in calls:
                self._run(self._arguments(args))
        return {}

    def call(
        self, args: ArenaArguments, output_places: Ranges, output_sizes: list[int], noop: bool
    ) -> dict[str, Any]:
        """Calls the candidate once, copies its outputs to their places and describes them."""
        values = self._arguments(args)
        if self.of_suite:
            self.returned.clear()
        self._poison(output_sizes, 1)
        poison_free_memory()
        self.launches.start(noop)
        self.gate.refused = []
        self.gate.computed = set()
        outputs = self._run(values)
        torch.cuda.synchronize()
        self._copy_outputs(outputs, output_places)
        if self.of_suite:  # its outputs are not known before
            self.returned.append(outputs)
        return {
            "outputs": [self.arena.describe(o) for o in outputs],
            "launches": self.launches.count,
            "refused": self.gate.refused,
            "operators": sorted(self.gate.computed),
        }

    def use_inputs(self, sets: list[ArenaArguments], output_sizes: list[int]) -> dict[str, Any]:
        """Sets the pool of inputs for timed calls, and warms up on two of them."""
        from kernel_gym.worker.gpu.launches import forget_tuning

        if not self.input_sets:
            forget_tuning()  # choices made while others used the GPU may be poor
        self._forget_graphs()
        self.input_sets = [self._arguments(args) for args in sets]
        self.output_sizes = output_sizes
        self.returned = collections.deque(maxlen=len(sets))
        self.launches.start(noop=False)
        for values in self.input_sets[:2]:
            self._run(values)
        torch.cuda.synchronize()
        return {}

    def time_calls(self, count: int, lead: int) -> dict[str, Any]:
        """Times `count` calls with cold caches over the pool of inputs.

        Args:
            count: How many calls.
            lead: Flushes of the caches before the first call, in which the host gets ahead.

        Returns:
            Milliseconds of each call by the GPU's clock, the median host seconds for queueing one,
            and where the outputs are.
        """
        self.returned.clear()
        self._poison(self.output_sizes, count)
        for _ in range(lead):
            self._flush()
        stamps, queued = self._stamps(count), [time.perf_counter()]
        for index, (start, end) in enumerate(stamps):
            values = self.input_sets[index % len(self.input_sets)]
            self._flush()
            start.record()
            outputs = self._run(values)
            end.record()
            self.returned.append(outputs)
            queued.append(time.perf_counter())
        torch.cuda.synchronize()
        host = statistics.median(after - before for before, after in pairwise(queued))
        times = [start.elapsed_time(end) for start, end in stamps]
        return {"ms": times, "host": host} | self._places(self.returned)

    def capture(self) -> dict[str, Any]:
        """Captures one call for each set of inputs as a graph.

        A second graph poisons the outputs that lie outside the arena.
        """
        assert self.recorder is not None
        self._forget_graphs()
        with self.recorder.beside():
            self._run(self.input_sets[0])
        self.graph, self.captured = self.recorder.record(
            lambda: [self._run(v) for v in self.input_sets]
        )
        returned = [o for o in chain(*self.captured) if not self.arena.holds(o)]
        if returned:
            self.poisoning, _ = self.recorder.record(lambda: _fill(*returned))
        return self._places(self.captured)

    def time_replay(self, lead: int) -> dict[str, Any]:
        """Times one replay of the graph with cold caches, in milliseconds."""
        assert self.graph is not None
        self.returned.clear()
        if self.poisoning is not None:
            self.poisoning.replay()  # outputs of earlier blocks must not count
        for _ in range(lead + 1):
            self._flush()
        ((start, end),) = self._stamps(1)
        begin = time.perf_counter()
        start.record()
        self.graph.replay()
        end.record()
        host = time.perf_counter() - begin
        torch.cuda.synchronize()
        self.returned.extend(self.captured)
        return {"ms": [start.elapsed_time(end)], "host": host}

    def copy_arena(self) -> dict[str, Any]:
        """Does nothing: the copies of the arena that go with a request are all that is wanted."""
        return {}

    def change_cpu(self) -> dict[str, Any]:
        """Continues on another CPU, whose core may have fewer users.

        A virtual machine often does not know which of its CPUs share a core. It may then leave a
        thread that never sleeps beside another one that slows it down.
        """
        allowed = os.sched_getaffinity(0)
        others = allowed - {ctypes.CDLL(None).sched_getcpu()}
        if others:
            os.sched_setaffinity(0, others)
            os.sched_setaffinity(0, allowed)
        return {}

    def release(self) -> dict[str, Any]:
        """Forgets the pool of inputs and the graphs, and returns memory to the driver."""
        self.input_sets = []
        self.returned.clear()
        self._forget_graphs()
        if self.recorder is not None:
            self.recorder.release()
        return {}

    def copy_outputs(self, calls: list[int], output_places: list[Ranges]) -> dict[str, Any]:
        """Copies the outputs of some of the last timed calls, counted from the last backwards.

        This is needed only where the judge cannot read the memory of this process itself.
        """
        for back, places in zip(calls, output_places, strict=True):
            self._copy_outputs(self.returned[-1 - back], places)
        return {}

    def facts(self) -> dict[str, Any]:
        """Describes what the compiler made of the kernels."""
        from kernel_gym.worker.gpu import facts as gpu_facts

        return {"kernels": self.hip.facts if self.hip else gpu_facts.of_triton(self.launches)}

    def cross_compile(self, arch: str) -> dict[str, Any]:
        """Compiles the Triton kernels seen so far for an AMD architecture and describes them."""
        from kernel_gym.worker.gpu import facts as gpu_facts

        return {"kernels": gpu_facts.cross_compile(self.launches, arch)}

    # -- the parts of a call -------------------------------------------------------------------

    def _stamps(self, count: int) -> list[tuple[torch.cuda.Event, torch.cuda.Event]]:
        """Returns pairs of events. Making one takes as long as a launch, so they are kept."""
        while len(self.events) < count:
            self.events.append(
                (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
            )
        return self.events[:count]

    def _flush(self) -> None:
        """Makes the caches cold by writing the flush buffer twice."""
        for value in (1, 2):
            self.flush.fill_(value)

    def _forget_graphs(self) -> None:
        self.graph = self.poisoning = None
        self.captured = []

    def _mode(self) -> Any:
        return self.gate if self.gated else nullcontext()

    def _run(self, values: list[Any]) -> tuple[Any, ...]:
        assert self.candidate is not None
        with self._mode():
            result = self.candidate(*values)
        return tuple(result) if isinstance(result, tuple | list) else (result,)

    def _arguments(self, args: ArenaArguments) -> list[Any]:
        return [a.value if isinstance(a, messages.Scalar) else self.arena.tensor(a) for a in args]

    def _poison(self, sizes: list[int], copies: int) -> None:
        """Poisons and frees memory of such sizes (bytes), which the allocator returns next."""
        for piece in [torch.empty(n, dtype=torch.uint8, device="cuda") for n in sizes * copies]:
            _fill(piece)

    def _places(self, calls: Iterable[tuple[Any, ...]]) -> dict[str, Any]:
        """Where the outputs of calls are, for the judge, which reads them itself."""
        if self.file is not None:  # GPU memory cannot be shared here
            return {}
        exports = Exports(self.arena)
        places = [[exports.place(output) for output in outputs] for outputs in calls]
        return {"places": places, "handles": exports.handles}

    def _copy_outputs(self, outputs: tuple[Any, ...], places: Ranges) -> None:
        for output, (start, size) in zip(outputs, places, strict=False):
            if isinstance(output, torch.Tensor) and output.is_cuda and output.nbytes == size:
                self.arena.put(start, output)
        torch.cuda.synchronize()


REQUESTS = RequestDispatcher(
    "worker",
    {
        messages.OpenGpu: GpuWorker.open,
        messages.Precompile: GpuWorker.precompile,
        messages.LoadOnGpu: GpuWorker.load,
        messages.CompileCalls: GpuWorker.compile,
        messages.CallOnGpu: GpuWorker.call,
        messages.UseInputs: GpuWorker.use_inputs,
        messages.TimeCalls: GpuWorker.time_calls,
        messages.CaptureGraph: GpuWorker.capture,
        messages.TimeReplay: GpuWorker.time_replay,
        messages.CopyArena: GpuWorker.copy_arena,
        messages.ChangeCpu: GpuWorker.change_cpu,
        messages.ReleaseMemory: GpuWorker.release,
        messages.CopyOutputs: GpuWorker.copy_outputs,
        messages.ReadGpuFacts: GpuWorker.facts,
        messages.CrossCompile: GpuWorker.cross_compile,
    },
)
"""The requests that the judge may send."""


def _fill(*tensors: torch.Tensor) -> None:
    """Poisons tensors: all their bytes become 0xFF."""
    for tensor in tensors:
        tensor.view(-1).view(torch.uint8).fill_(0xFF)
