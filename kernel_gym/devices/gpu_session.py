"""One candidate in one worker on a real GPU, seen from the judge."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from kernel_gym.devices.base import (
    Audit,
    Call,
    DeviceLostError,
    Failed,
    FailureKind,
    InfraError,
    OutputTensor,
    SketchedCall,
)
from kernel_gym.devices.failures import describe_exit, read_failure
from kernel_gym.devices.gpu_arena import GUARD, ArenaFull, Piece
from kernel_gym.devices.gpu_placing import Placed, describe, place, storage_bytes
from kernel_gym.devices.gpu_worker import Worker
from kernel_gym.devices.sim_outputs import are_outputs, parse_output
from kernel_gym.devices.vendors import find_compiler
from kernel_gym.records import KernelFacts
from kernel_gym.sandbox.channel import ChannelClosed, ChannelError, ChannelTimeout
from kernel_gym.tasks.problem import TensorArg, Value
from kernel_gym.tasks.task import Task

if TYPE_CHECKING:
    from kernel_gym.devices.gpu import GpuDevice

LOAD_TIMEOUT = 90.0
CALL_TIMEOUT = 30.0


@dataclass(frozen=True)
class Block:
    """Timed calls: seconds of each by the worker's stamps, and of all by the judge's clock."""

    stamps: tuple[float, ...]
    wall: float


class GpuSession:
    """One candidate, or a baseline when `trusted`."""

    def __init__(
        self, device: GpuDevice, task: Task, worker: Worker, trusted: bool = False
    ) -> None:
        self.device = device
        self.replayed = False
        """Whether the ring's calls were captured as a graph."""
        self._task, self._worker = task, worker
        self._arena = device.arena
        self._language = task.language
        self._dead: Failed | None = None
        self.confinement = worker.ready()
        self._in_place = {
            a.name for a in task.problem.args if isinstance(a, TensorArg) and a.in_place
        }

    def load(self, source: str, language: str | None = None) -> Failed | None:
        """Builds and loads the candidate; the language "torch" is for the task's reference."""
        self._language = language or self._task.language
        header: dict[str, Any] = {
            "do": "load",
            "language": self._language,
            "entry": self._task.entry,
            "source": source,
        }
        if self._language == "hip":
            compiler = find_compiler(self.device.vendor)
            if compiler is None:
                raise InfraError(f"HIP needs {self.device.vendor.compiler}, which is not here")
            vendor, problem = self.device.vendor, self._task.problem
            first = len(problem.args)
            header["outputs"] = list(range(first, first + len(problem.outputs)))
            header["command"] = vendor.compile_command(compiler, self.device.arch)
            header["suffix"] = vendor.suffix
            header["cache"] = self._worker.cache
        answer = self._ask(header, LOAD_TIMEOUT)
        return answer if isinstance(answer, Failed) else None

    def compile(self, calls: Sequence[SketchedCall]) -> Failed | None:
        """Compiles what calls of such dimensions and inputs need; their values do not matter."""
        if self._language != "triton":
            return None
        header = {"do": "compile", "calls": [self._sketch(*call) for call in calls]}
        answer = self._ask(header, LOAD_TIMEOUT)
        return answer if isinstance(answer, Failed) else None

    def _sketch(self, dims: Mapping[str, int], inputs: Mapping[str, Value]) -> list[dict[str, Any]]:
        """Arguments that all lie at one place: nothing reads them."""
        pieces = {
            name: Piece(GUARD, value.untyped_storage().nbytes(), name)
            for name, value in inputs.items()
            if isinstance(value, torch.Tensor)
        }
        return self.arguments(Placed(inputs, pieces, ()), dims)

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
        self._arena_reset()
        placed = self._place(inputs, dims)
        if isinstance(placed, Failed):
            return placed
        self._arena.publish()
        boxes = [[p.start, p.size] for p in placed.outputs]
        header = {
            "do": "call",
            "args": self.arguments(placed, dims),
            "outbox": [] if self._language == "hip" else boxes,
            "poison": [] if self._language == "hip" else [p.size for p in placed.outputs],
            "noop": noop,
        }
        answer = self._ask(header, CALL_TIMEOUT)
        if isinstance(answer, Failed):
            return answer
        described, launches = answer.get("outputs"), answer.get("launches")
        refused = answer.get("refused")
        lists = isinstance(described, list) and isinstance(refused, list)
        if not lists or type(launches) is not int or not are_outputs(described):
            return self._fail(Failed(FailureKind.RUNTIME, "the worker broke the protocol"))
        self._arena.fetch()
        damaged = self._arena.damaged()
        if damaged:
            return Failed(
                FailureKind.RUNTIME, f"a kernel wrote outside its buffers, next to {damaged}"
            )
        return Call(
            outputs=tuple(self._read(described or [], placed, dims)),
            seconds=0.0,
            launches=launches,
            modified_inputs=self._modified(placed),
            refused=tuple(str(r)[:120] for r in (refused or [])[:16]),
        )

    def facts(self) -> tuple[KernelFacts, ...]:
        """What the compiler made of the kernels."""
        return self._facts({"do": "facts"})

    def cross_facts(self, arch: str) -> tuple[KernelFacts, ...]:
        """What Triton's compiler for an AMD architecture makes of them."""
        return self._facts({"do": "cross", "arch": arch})

    def close(self) -> None:
        """Ends the worker."""
        self._worker.close()

    # -- timing: see judge/pairs.py -----------------------------------------------------------

    def ring(self, sets: Sequence[Placed], dims: Mapping[str, int]) -> Failed | None:
        """Hands the worker the argument sets of timed calls, and lets it warm up on them."""
        header = {
            "do": "ring",
            "sets": [self.arguments(placed, dims) for placed in sets],
            "outputs": [] if self._language == "hip" else [p.size for p in sets[0].outputs],
        }
        self.replayed = False
        answer = self._ask(header, CALL_TIMEOUT)
        return answer if isinstance(answer, Failed) else None

    def block(self, count: int) -> Block | Failed:
        """`count` timed calls with cold caches."""
        return self._timed({"do": "block", "count": count})

    def capture(self) -> Failed | None:
        """Makes one graph of a round over the ring."""
        answer = self._ask({"do": "capture"}, CALL_TIMEOUT)
        self.replayed = not isinstance(answer, Failed)
        return answer if isinstance(answer, Failed) else None

    def replay(self, count: int) -> Block | Failed:
        """`count` timed replays of the graph, each with cold caches."""
        return self._timed({"do": "replay", "count": count})

    def deliver(self, calls: Sequence[int], sets: Sequence[Placed]) -> Failed | None:
        """Fetches outputs of some of the last timed calls, counted backwards, into `sets`."""
        if self._language == "hip":
            self._arena.fetch()
            return None
        boxes = [[[p.start, p.size] for p in placed.outputs] for placed in sets]
        answer = self._ask({"do": "deliver", "calls": list(calls), "outboxes": boxes}, CALL_TIMEOUT)
        self._arena.fetch()
        return answer if isinstance(answer, Failed) else None

    def rest(self) -> None:
        """Gives back the memory of the ring; the worker may hold it until the next evaluation."""
        self._ask({"do": "rest"}, CALL_TIMEOUT)

    def _timed(self, header: dict[str, Any]) -> Block | Failed:
        torch.cuda.synchronize()
        start = time.perf_counter()
        answer = self._ask(header, CALL_TIMEOUT)
        wall = time.perf_counter() - start
        if isinstance(answer, Failed):
            return answer
        stamps = answer.get("ms")
        if not isinstance(stamps, list) or not all(isinstance(s, float) and s > 0 for s in stamps):
            return self._fail(Failed(FailureKind.RUNTIME, "the worker broke the protocol"))
        return Block(tuple(ms * 1e-3 for ms in stamps), wall)

    # -- the call, step by step ----------------------------------------------------------------

    def _arena_reset(self) -> None:
        try:
            self._arena.reset()
        except torch.cuda.OutOfMemoryError as error:
            raise DeviceLostError("the GPU's memory is used up") from error

    def _place(self, inputs: Mapping[str, Value], dims: Mapping[str, int]) -> Placed | Failed:
        try:
            return place(self._arena, self._task, inputs, dims)
        except ArenaFull as error:
            raise InfraError(f"a workload does not fit: {error}") from error

    def arguments(self, placed: Placed, dims: Mapping[str, int]) -> list[dict[str, Any]]:
        """The arguments of a call in the worker's terms."""
        args = []
        for name, value in placed.inputs.items():
            if isinstance(value, torch.Tensor):
                args.append(describe(placed.pieces[name], value))
            else:
                args.append({"value": value})
        if self._language != "hip":
            return args
        problem = self._task.problem
        shapes = problem.output_shapes(dims)
        for output, piece in zip(problem.outputs, placed.outputs, strict=True):
            like = torch.empty(shapes[output.name], dtype=output.dtype, device="meta")
            args.append(describe(piece, like))
        return args + [{"value": size} for size in problem.c_sizes(dims).values()]

    def _read(
        self, described: list[dict[str, Any]], placed: Placed, dims: Mapping[str, int]
    ) -> list[OutputTensor]:
        """The outputs from the arena, trusting none of what the worker said of them."""
        problem = self._task.problem
        shapes = problem.output_shapes(dims)
        found = []
        for index, output in enumerate(described):
            if "wrong" in output:
                found.append(OutputTensor(None, str(output["wrong"])[:200]))
                continue
            said = parse_output(output)
            if isinstance(said, str):
                found.append(OutputTensor(None, said))
                continue
            alias = self._alias(output.get("start"), placed)
            if alias:
                found.append(OutputTensor(None, f"a view of the input {alias!r}"))
                continue
            tensor = torch.empty_strided(said.shape, said.strides, dtype=said.dtype, device="meta")
            if index < len(placed.outputs):
                stated = problem.outputs[index]
                same = (
                    tuple(said.shape) == tuple(shapes[stated.name]) and said.dtype == stated.dtype
                )
                if same and tensor.is_contiguous():
                    bytes_ = self._arena.view(placed.outputs[index]).clone()
                    tensor = bytes_.view(stated.dtype).view(said.shape)
            found.append(OutputTensor(tensor))
        return found

    def _alias(self, start: Any, placed: Placed) -> str:
        if not isinstance(start, int):
            return ""
        for name, piece in placed.pieces.items():
            if piece.start <= start < piece.end and name not in self._in_place:
                return name
        return ""

    def _modified(self, placed: Placed) -> tuple[str, ...]:
        changed = []
        for name, piece in placed.pieces.items():
            value = placed.inputs[name]
            assert isinstance(value, torch.Tensor)
            if name not in self._in_place and not torch.equal(
                self._arena.view(piece), storage_bytes(value)
            ):
                changed.append(name)
        return tuple(changed)

    # -- the pipe ------------------------------------------------------------------------------

    def _facts(self, header: dict[str, Any]) -> tuple[KernelFacts, ...]:
        answer = self._ask(header, LOAD_TIMEOUT) if self._dead is None else self._dead
        if isinstance(answer, Failed):
            return ()
        try:
            return tuple(KernelFacts(**{"sgprs": 0, **k}) for k in answer["kernels"])
        except (KeyError, TypeError, ValueError):
            return ()

    def _ask(self, header: dict[str, Any], timeout: float) -> dict[str, Any] | Failed:
        if self._dead:
            return self._dead
        do = header["do"]
        try:
            answer = self._worker.child.channel.request(header, timeout=timeout).header
        except ChannelTimeout:
            limit = f"no answer within {timeout:.0f} s"
            return self._fail(Failed(FailureKind.TIMEOUT, f"{do}: {limit}"))
        except ChannelClosed:
            return self._fail(Failed(FailureKind.RUNTIME, describe_exit(self._worker.child)))
        except ChannelError as error:
            return self._fail(
                Failed(FailureKind.RUNTIME, f"the worker broke the protocol: {error}")
            )
        if "error" not in answer:
            return answer
        failed = read_failure(answer["error"])
        if "out of memory" in failed.message and do != "load":
            self._fail(failed)  # who took it is not known: only who fails each time did
            raise DeviceLostError(f"the GPU's memory is used up: {failed.message[:200]}")
        lost = "CUDA error" in failed.message or "HIP error" in failed.message
        return self._fail(failed) if lost and do != "capture" else failed

    def _fail(self, failed: Failed) -> Failed:
        """Remembers a failure after which the worker cannot be asked again."""
        self._dead = failed
        self._worker.close()  # a kernel that hangs would hold the GPU
        return failed
