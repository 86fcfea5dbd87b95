"""`sim:gfx942` and its kin: the embedded devices, seen from the judge.

Each session is two processes: the untrusted worker, and the simulated GPU on the judge's side. The
judge writes inputs and reads outputs through its own mapping of the GPU's memory.
"""

from __future__ import annotations

import contextlib
import importlib.util
import mmap
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from kernel_gym.devices import sim_memory
from kernel_gym.devices.answers import (
    BadAnswerError,
    parse_call,
    parse_failure,
    reading_an_answer,
    stated_outputs,
)
from kernel_gym.devices.base import (
    Audit,
    Call,
    DeviceLostError,
    Failed,
    FailureKind,
    InfraError,
    SketchedCall,
)
from kernel_gym.devices.cache import cache_folder
from kernel_gym.devices.failures import describe_exit, describe_fault
from kernel_gym.devices.sim_outputs import kernel_profile, read_outputs
from kernel_gym.devices.specs import SIMULATED
from kernel_gym.devices.toolchain import HipToolchain, MissingToolchain, hip_toolchain
from kernel_gym.records import Clock, KernelFacts
from kernel_gym.sandbox.channel import ChannelClosed, ChannelError, ChannelTimeout
from kernel_gym.sandbox.confine import Limits
from kernel_gym.sandbox.spawn import TemplateError, shared_template
from kernel_gym.tasks.problem import Scale, TensorArg, Value
from kernel_gym.tasks.task import Task

LOAD_TIMEOUT = 30.0
CALL_TIMEOUT = 30.0
LAUNCH_LIMIT = 10.0
MEMORY = 2 << 30
"""Live bytes of one simulated GPU: workloads here are small twins."""


class SimDevice:
    """A simulated GPU: deterministic, on any machine. Its times are modelled.

    Args:
        threads: of the host, for workgroups.
        arch: a key of :data:`~kernel_gym.devices.specs.SIMULATED`.
    """

    clock = Clock.MODELLED
    scale = Scale.SIM
    where = torch.device("cpu")

    def __init__(self, threads: int = 1, arch: str = "gfx942") -> None:
        self._threads = threads
        self.name = f"sim:{arch}"
        self.spec = SIMULATED[arch]

    @property
    def _toolchain(self) -> HipToolchain | MissingToolchain:
        return hip_toolchain(self.spec.arch)

    @property
    def languages(self) -> Sequence[str]:
        """HIP needs a clang with ROCm's device libraries."""
        return ("triton", "hip") if isinstance(self._toolchain, HipToolchain) else ("triton",)

    @property
    def facts(self) -> str:
        """One paragraph for prompts."""
        return self.spec.facts

    def versions(self) -> dict[str, str]:
        """Versions of everything that decides a result."""
        import triton

        import kernel_gym

        toolchain = self._toolchain
        clang = toolchain.version if isinstance(toolchain, HipToolchain) else "none"
        return {
            "kernel_gym": kernel_gym.__version__,
            "torch": torch.__version__,
            "triton": triton.__version__,
            "clang": clang,
        }

    def turn(self, kind: object) -> contextlib.AbstractContextManager[None]:
        """Nobody waits: each session has a simulated GPU of its own."""
        return contextlib.nullcontext()

    def usable(self, task: Task) -> bool:
        """Each simulated GPU is made anew."""
        return True

    def open(self, task: Task, trusted: bool = False, seed: int = 0) -> SimSession:
        """A fresh worker and a fresh GPU for candidates of a task.

        Args:
            task: what they solve.
            trusted: whether the source is ours.
            seed: decides which workgroups the model of time samples; unknown to the worker.

        Raises:
            InfraError: a process could not be started.
        """
        return SimSession(task, self._threads, trusted, seed, self.spec.arch)

    def close(self) -> None:
        """Sessions hold everything."""


class SimSession:
    """One candidate in one worker, on a simulated GPU of its own."""

    def __init__(
        self, task: Task, threads: int, trusted: bool, seed: int = 0, arch: str = "gfx942"
    ) -> None:
        self._task, self._arch = task, arch
        self._dead: Failed | None = None
        self._in_place = {
            a.name for a in task.problem.args if isinstance(a, TensorArg) and a.in_place
        }
        template = shared_template()
        memory = sim_memory.create_file()
        self._memory = mmap.mmap(memory, sim_memory.ARENA_SIZE)
        options = {
            "threads": threads,
            "memory": MEMORY,
            "launch_limit": LAUNCH_LIMIT,
            "sample_seed": seed,
            "same_samples": trusted,  # a baseline's time must not depend on what was timed before
            "arch": arch,
        }
        device_end, worker_end = socket.socketpair()
        cache = [str(cache_folder("triton"))] if trusted else []
        environment = {"TRITON_CACHE_DIR": cache[0]} if trusted else {}
        try:
            self._device = template.fork("device", [memory, device_end.fileno()], options)
            self._worker = template.fork(
                "worker",
                [worker_end.fileno()],
                {"arch": arch},
                Limits(),
                environment,
                trusted,
                cache,
            )
            ready = self._worker.channel.recv(LOAD_TIMEOUT)
        except (TemplateError, ChannelError) as error:
            raise InfraError(f"a worker could not be started: {error}") from error
        finally:
            os.close(memory)
            device_end.close()
            worker_end.close()
        self.confinement: dict[str, Any] = ready.header["confinement"]

    def load(self, source: str, language: str | None = None) -> Failed | None:
        """Builds and loads the candidate."""
        header: dict[str, Any] = {
            "do": "load",
            "language": language or self._task.language,
            "entry": self._task.entry,
            "source": source,
        }
        if self._task.language == "hip":
            toolchain = _toolchain(self._arch)
            problem = self._task.problem
            first = len(problem.args)
            header["outputs"] = list(range(first, first + len(problem.outputs)))
            header["toolchain"] = {"device": toolchain.device, "host": toolchain.host}
        answer = self._ask_worker(header, LOAD_TIMEOUT)
        return answer if isinstance(answer, Failed) else None

    def call(
        self,
        inputs: Mapping[str, Value],
        dims: Mapping[str, int],
        noop: bool = False,
        audit: Audit = Audit.OFF,
    ) -> Call | Failed:
        """Calls the candidate once on fresh device copies of the inputs."""
        if self._dead:
            return self._dead
        self._ask_device({"do": "begin", "noop": noop, "audit": str(audit)})
        try:
            args, buffers = self._place_inputs(inputs)
            if self._task.language == "hip":
                args += self._launcher_arguments(dims)
        except _DeviceFull as error:
            return self._fail(Failed(FailureKind.RUNTIME, str(error)))
        answer = self._ask_worker({"do": "call", "args": args}, CALL_TIMEOUT)
        try:
            return self._collect(answer, inputs, dims, buffers)
        except BadAnswerError as error:
            return self._fail(Failed(FailureKind.RUNTIME, str(error)))
        finally:
            for address in (*buffers.values(), *self._outputs):
                self._ask_device({"do": "free", "address": address})

    def compile(self, calls: Sequence[SketchedCall]) -> Failed | None:
        """Nothing: nobody waits for this device."""
        return None

    def facts(self) -> tuple[KernelFacts, ...]:
        """What the compiler made of the kernels, once each."""
        kernels = self._ask_device({"do": "facts"})["kernels"]
        return tuple(KernelFacts(**kernel) for kernel in kernels)

    def close(self) -> None:
        """Ends worker and GPU."""
        with contextlib.suppress(TemplateError):
            self._worker.close()
            self._device.close()

    # -- the call, step by step ----------------------------------------------------------------

    def _place_inputs(
        self, inputs: Mapping[str, Value]
    ) -> tuple[list[dict[str, Any]], dict[str, int]]:
        args: list[dict[str, Any]] = []
        buffers: dict[str, int] = {}
        self._outputs: list[int] = []
        for name, value in inputs.items():
            if not isinstance(value, torch.Tensor):
                args.append({"value": value})
                continue
            offset = value.storage_offset() * value.itemsize
            size = value.untyped_storage().nbytes()
            start = self._allocate(size, f"input {name!r}")
            buffers[name] = start
            self._view(start, size).copy_(_storage_bytes(value))
            args.append(_describe(int(start + offset), value.shape, value.stride(), value.dtype))
        return args, buffers

    def _launcher_arguments(self, dims: Mapping[str, int]) -> list[dict[str, Any]]:
        """HIP: preallocated outputs, then sizes."""
        problem = self._task.problem
        args: list[dict[str, Any]] = []
        shapes = problem.output_shapes(dims)
        for output in problem.outputs:
            like = torch.empty(shapes[output.name], dtype=output.dtype, device="meta")
            address = self._allocate(like.nbytes, f"output {output.name!r}")
            self._outputs.append(address)
            args.append(_describe(address, like.shape, like.stride(), like.dtype))
        args += [{"value": size} for size in problem.c_sizes(dims).values()]
        return args

    def _collect(
        self,
        answer: dict[str, Any] | Failed,
        inputs: Mapping[str, Value],
        dims: Mapping[str, int],
        buffers: dict[str, int],
    ) -> Call | Failed:
        record = self._ask_device({"do": "end"})
        if record["fault"]:
            return self._fail(describe_fault(record["fault"]))
        if isinstance(answer, Failed):
            return answer
        stated = stated_outputs(self._task.problem, dims)
        inputs_at = {
            start: "" if name in self._in_place else name for name, start in buffers.items()
        }
        with reading_an_answer():
            said = parse_call(answer, stated).outputs
            outputs = read_outputs(said, stated, inputs_at, self._locate, self._view)
        return Call(
            outputs=outputs,
            seconds=record["seconds"],
            launches=record["launches"],
            modified_inputs=self._modified(inputs, buffers),
            refused=tuple(record["refused"]),
            retuned=record["retuned"],
            profile=kernel_profile(record["longest"]),
        )

    def _locate(self, address: int, size: int) -> int | None:
        """Where the live allocation begins that holds a range whole; None when there is none."""
        header = {"do": "locate", "address": address, "size": size}
        allocation = self._ask_device(header)["allocation"]
        return allocation and allocation["start"]

    def _modified(self, inputs: Mapping[str, Value], buffers: dict[str, int]) -> tuple[str, ...]:
        changed = []
        for name, start in buffers.items():
            value = inputs[name]
            assert isinstance(value, torch.Tensor)
            shadow = _storage_bytes(value)
            found = self._view(start, shadow.numel())
            if name not in self._in_place and not torch.equal(found, shadow):
                changed.append(name)
        return tuple(changed)

    # -- the two pipes -------------------------------------------------------------------------

    def _allocate(self, size: int, label: str) -> int:
        answer = self._ask_device({"do": "allocate", "size": size, "label": label})
        if "error" in answer and answer["worker_bytes"]:
            raise _DeviceFull("the candidate's earlier calls have used up the device's memory")
        if "error" in answer:
            raise InfraError(f"a workload does not fit the simulated device: {answer['error']}")
        return answer["address"]

    def _view(self, address: int, size: int) -> torch.Tensor:
        """Bytes of the device's memory."""
        if not size:
            return torch.empty(0, dtype=torch.uint8)
        offset = address - sim_memory.ARENA_BASE
        return torch.frombuffer(self._memory, dtype=torch.uint8, count=size, offset=offset)

    def _ask_device(self, header: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._device.channel.request(header, timeout=LAUNCH_LIMIT * 3).header
        except ChannelError as error:
            raise DeviceLostError(f"the simulated device failed: {error}") from error

    def _ask_worker(self, header: dict[str, Any], timeout: float) -> dict[str, Any] | Failed:
        try:
            answer = self._worker.channel.request(header, timeout=timeout).header
        except ChannelTimeout:
            limit = f"no answer within {timeout:.0f} s"
            return self._fail(Failed(FailureKind.TIMEOUT, f"{header['do']}: {limit}"))
        except ChannelClosed:
            return self._fail(Failed(FailureKind.RUNTIME, describe_exit(self._worker)))
        except ChannelError as error:
            return self._fail(
                Failed(FailureKind.RUNTIME, f"the worker broke the protocol: {error}")
            )
        if "error" in answer:
            return parse_failure(answer["error"])
        return answer

    def _fail(self, failed: Failed) -> Failed:
        """Remembers a failure after which the worker cannot be asked again."""
        self._dead = failed
        return failed


def _toolchain(arch: str) -> HipToolchain:
    """What HIP candidates need on our side.

    Raises:
        InfraError: it is not there; no candidate is to blame for that.
    """
    found = hip_toolchain(arch)
    if not isinstance(found, HipToolchain):
        raise InfraError(f"{found.problem}; install it: {found.mend}")
    if importlib.util.find_spec("kernel_gym.worker._hip_runtime") is None:
        raise InfraError("kernel-gym's HIP runtime is not built; install the package again")
    return found


class _DeviceFull(Exception):
    """No room for the judge's buffers beside what the candidate holds."""


def _describe(
    address: int, shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype
) -> dict[str, Any]:
    name = str(dtype).removeprefix("torch.")
    return {"address": address, "shape": list(shape), "strides": list(strides), "dtype": name}


def _storage_bytes(tensor: torch.Tensor) -> torch.Tensor:
    storage = tensor.untyped_storage()
    return torch.empty(0, dtype=torch.uint8).set_(storage, 0, (storage.nbytes(),), (1,))
