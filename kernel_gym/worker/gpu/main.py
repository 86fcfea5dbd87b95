"""The worker's loop on a real GPU: load one candidate, call it, time blocks of calls.

The clock that decides is the judge's as well: what this process says of its times must agree with
the time that the judge saw pass. Values are compared in the judge's process, from the judge's
memory.
"""

from __future__ import annotations

import collections
import ctypes
import os
import socket
import statistics
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from itertools import chain, pairwise
from typing import Any

import torch

from kernel_gym.sandbox import confine, failures
from kernel_gym.sandbox.channel import BLOCK_SPIN, Channel
from kernel_gym.worker import preload as warm
from kernel_gym.worker.gpu.library_gate import take_kernels_away
from kernel_gym.worker.gpu.memory import Exports

Candidate = Callable[..., Any]
Arguments = list[dict[str, Any]]


def main(fds: list[int], options: dict[str, Any]) -> None:
    """Serves the judge over the first descriptor; the second, if any, is the shared host memory."""
    torch.set_num_threads(1)
    confine.forbid_inspection()
    judge = Channel(socket.socket(fileno=fds[0]), buffers=1)
    session = GpuWorker(options, fds[1] if len(fds) > 1 else None)
    judge.send({"confinement": options["confinement"]})
    while True:
        message = judge.recv(spin=BLOCK_SPIN)
        judge.send(session.answer(message.header, *message.buffers))


class GpuWorker:
    """One candidate on the worker's only visible GPU, or one baseline after another."""

    def __init__(self, options: dict[str, Any], file: int | None) -> None:
        from kernel_gym.worker.gpu.gate import GateMode
        from kernel_gym.worker.gpu.launches import Launches, watch_tuning
        from kernel_gym.worker.gpu.memory import Arena
        from kernel_gym.worker.gpu.recorder import Recorder

        warm.seed_cache()
        if not options["trusted"]:
            take_kernels_away()
        self.options, self.file = options, file
        self.arena: Arena
        self.flush: torch.Tensor
        self.recorder: Recorder | None = None
        self.gate = GateMode()
        self.gated = True
        self.launches = Launches()
        watch_tuning()
        self.candidate: Candidate | None = None
        self.hip: Any = None
        self.ring: list[list[Any]] = []
        self.kept: collections.deque[tuple[Any, ...]] = collections.deque()
        self.captured: list[tuple[Any, ...]] = []
        self.graph: torch.cuda.CUDAGraph | None = None
        self.poisoning: torch.cuda.CUDAGraph | None = None
        self.events: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []

    def answer(self, header: dict[str, Any], library: bytes = b"") -> dict[str, Any]:
        """Does what the judge asks; a failure becomes `{"error": {...}}`.

        Where memory passes through the host, "pull" are the pieces to fetch from there before it,
        [start, size] each, and "push" those to show there after it. The compiled object of a HIP
        candidate comes behind the header.
        """
        try:
            if library:
                header["library"] = library
            pull, push = header.pop("pull", ()), header.pop("push", ())
            for start, size in pull:
                self.arena.pull(start, size)
            answer = getattr(self, f"do_{header.pop('do')}")(**header)
            for start, size in push:
                self.arena.push(start, size)
            return answer
        except BaseException as error:
            return {"error": failures.describe(error)}

    def do_open(self) -> dict[str, Any]:
        """Makes the GPU context, opens the arena and asks for memory.

        What timed calls need is used once here: torch loads its own kernels when they are first
        called, which would take time that belongs to the GPU's only user.
        """
        from kernel_gym.worker.gpu.memory import open_arena
        from kernel_gym.worker.gpu.recorder import Recorder

        torch.cuda.init()
        self.arena = open_arena(self.options["handle"], self.options["size"], self.file)
        self.flush = torch.zeros(self.options["flush"] // 4, dtype=torch.int32, device="cuda")
        self.recorder = Recorder()
        graph, _ = self.recorder.record(lambda: _fill(self.flush))
        graph.replay()
        self._flush()
        self._poison([1], 1)
        self.launches.watch_triton()
        torch.cuda.synchronize()
        return {}

    def do_rehearse(self, **candidate: Any) -> dict[str, Any]:
        """Compiles a Triton candidate, before there is a GPU context."""
        from kernel_gym.worker.gpu.precompile import rehearse

        failed = rehearse(**candidate)
        return {"error": failed} if failed else {}

    def do_load(self, language: str, entry: str, source: str, **build: Any) -> dict[str, Any]:
        """Loads the candidate; "torch" is the task's reference, ungated."""
        self.do_rest()
        self.launches.forget()
        self.hip = None
        if language == "hip":
            from kernel_gym.worker.hip import gpu as hip_gpu

            self.hip = hip_gpu.load(entry=entry, **build)
            self.launches.watch_library(self.hip.library)
            self.candidate, self.gated = self.hip, True
            return {}
        from kernel_gym.worker import triton_module

        self.gated = language == "triton"
        with self._mode():
            self.candidate = triton_module.load(source, entry)
        return {}

    def do_compile(self, calls: list[Arguments]) -> dict[str, Any]:
        """Compiles what the calls need without running any of it."""
        from kernel_gym.worker.gpu.launches import without_tuning

        self.launches.start(noop=True)
        with without_tuning():
            for args in calls:
                self._run(self._arguments(args))
        return {}

    def do_call(
        self, args: Arguments, outbox: list[list[int]], poison: list[int], noop: bool
    ) -> dict[str, Any]:
        """One call; the outputs' bytes go to the outbox, [start, size] each, what they are back."""
        values = self._arguments(args)
        self._poison(poison, 1)
        self.launches.start(noop)
        self.gate.refused = []
        outputs = self._run(values)
        torch.cuda.synchronize()
        self._deliver(outputs, outbox)
        return {
            "outputs": [self.arena.describe(o) for o in outputs],
            "launches": self.launches.count,
            "refused": self.gate.refused,
        }

    def do_ring(self, sets: list[Arguments], outputs: list[int]) -> dict[str, Any]:
        """Takes the argument sets of timed calls; `outputs` are the sizes of what each returns."""
        from kernel_gym.worker.gpu.launches import forget_tuning

        if not self.ring:
            forget_tuning()  # what was chosen while others used the GPU may not be the best
        self._forget_graphs()
        self.ring = [self._arguments(args) for args in sets]
        self.sizes = outputs
        self.kept = collections.deque(maxlen=len(sets))
        self.launches.start(noop=False)
        for values in self.ring[:2]:
            self._run(values)
        torch.cuda.synchronize()
        return {}

    def do_block(self, count: int, lead: int) -> dict[str, Any]:
        """`count` cold calls over the ring, after `lead` flushes that let the host get ahead.

        Milliseconds of each call, and seconds that queueing one took.
        """
        self.kept.clear()
        self._poison(self.sizes, count)
        for _ in range(lead):
            self._flush()
        stamps, queued = self._stamps(count), [time.perf_counter()]
        for index, (start, end) in enumerate(stamps):
            values = self.ring[index % len(self.ring)]
            self._flush()
            start.record()
            outputs = self._run(values)
            end.record()
            self.kept.append(outputs)
            queued.append(time.perf_counter())
        torch.cuda.synchronize()
        host = statistics.median(after - before for before, after in pairwise(queued))
        times = [start.elapsed_time(end) for start, end in stamps]
        return {"ms": times, "host": host} | self._places(self.kept)

    def do_capture(self) -> dict[str, Any]:
        """Captures one round over the ring as a graph, and one that poisons what it returns."""
        assert self.recorder is not None
        self._forget_graphs()
        with self.recorder.beside():
            self._run(self.ring[0])
        self.graph, self.captured = self.recorder.record(lambda: [self._run(v) for v in self.ring])
        returned = [o for o in chain(*self.captured) if not self.arena.holds(o)]
        if returned:
            self.poisoning, _ = self.recorder.record(lambda: _fill(*returned))
        return self._places(self.captured)

    def do_replay(self, count: int) -> dict[str, Any]:
        """`count` replays of the graph, each with cold caches; milliseconds of each."""
        assert self.graph is not None
        self.kept.clear()
        stamps = self._stamps(count)
        for index, (start, end) in enumerate(stamps):
            if index == count - 1 and self.poisoning is not None:
                self.poisoning.replay()  # what earlier replays have left is no answer to this one
            self._flush()
            start.record()
            self.graph.replay()
            end.record()
        torch.cuda.synchronize()
        self.kept.extend(self.captured)
        return {"ms": [start.elapsed_time(end) for start, end in stamps], "host": 0.0}

    def do_nothing(self) -> dict[str, Any]:
        """For pieces that are to be fetched."""
        return {}

    def do_move(self) -> dict[str, Any]:
        """Goes on on another processor, whose core may have fewer other users.

        A virtual machine is often not told which of its processors are halves of one core, so it
        leaves a thread that never sleeps beside another that slows it down.
        """
        allowed = os.sched_getaffinity(0)
        others = allowed - {ctypes.CDLL(None).sched_getcpu()}
        if others:
            os.sched_setaffinity(0, others)
            os.sched_setaffinity(0, allowed)
        return {}

    def do_rest(self) -> dict[str, Any]:
        """Forgets the ring and gives its memory back to the device."""
        self.ring = []
        self.kept.clear()
        self._forget_graphs()
        if self.recorder is not None:
            self.recorder.release()
        return {}

    def do_deliver(self, calls: list[int], outboxes: list[list[list[int]]]) -> dict[str, Any]:
        """Copies the outputs of some of the last timed calls, counted from the last backwards.

        Only where the judge cannot read this process's memory itself.
        """
        for back, outbox in zip(calls, outboxes, strict=True):
            self._deliver(self.kept[-1 - back], outbox)
        return {}

    def do_facts(self) -> dict[str, Any]:
        """What the compiler made of the kernels."""
        from kernel_gym.worker.gpu import facts as gpu_facts

        return {"kernels": self.hip.facts if self.hip else gpu_facts.of_triton(self.launches)}

    def do_cross(self, arch: str) -> dict[str, Any]:
        """Compiles the Triton kernels seen so far for an AMD architecture."""
        from kernel_gym.worker.gpu import facts as gpu_facts

        return {"kernels": gpu_facts.cross_compile(self.launches, arch)}

    # -- the parts of a call -------------------------------------------------------------------

    def _stamps(self, count: int) -> list[tuple[torch.cuda.Event, torch.cuda.Event]]:
        """Pairs of events, which are made once: that takes as long as a launch."""
        while len(self.events) < count:
            self.events.append(
                (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
            )
        return self.events[:count]

    def _flush(self) -> None:
        """Makes the caches cold: writes its memory twice."""
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

    def _arguments(self, args: Arguments) -> list[Any]:
        return [a["value"] if "value" in a else self.arena.tensor(a) for a in args]

    def _poison(self, sizes: list[int], copies: int) -> None:
        """Fills and frees memory of the outputs' sizes, which the allocator hands out next."""
        for piece in [torch.empty(n, dtype=torch.uint8, device="cuda") for n in sizes * copies]:
            _fill(piece)

    def _places(self, calls: Iterable[tuple[Any, ...]]) -> dict[str, Any]:
        """Where the outputs of calls are, for the judge, who reads them itself."""
        if self.file is not None:  # memory is not shared by handle here
            return {}
        exports = Exports(self.arena)
        places = [[exports.place(output) for output in outputs] for outputs in calls]
        return {"places": places, "handles": exports.handles}

    def _deliver(self, outputs: tuple[Any, ...], outbox: list[list[int]]) -> None:
        for output, (start, size) in zip(outputs, outbox, strict=False):
            if isinstance(output, torch.Tensor) and output.is_cuda and output.nbytes == size:
                self.arena.put(start, output)
        torch.cuda.synchronize()


def _fill(*tensors: torch.Tensor) -> None:
    """Overwrites their bytes by what is no answer."""
    for tensor in tensors:
        tensor.view(-1).view(torch.uint8).fill_(0xFF)
