"""`sim:gfx942` and its kin: the embedded devices, seen from the judge.

Each session is two processes: the untrusted worker, and the simulated GPU on the judge's side. The
judge writes inputs and reads outputs through its own mapping of the GPU's memory.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from kernel_gym.devices.answers import (
    BadAnswerError,
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
    InfraError,
    SketchedCall,
)
from kernel_gym.devices.budget import HostBudget
from kernel_gym.devices.cache import cache_folder
from kernel_gym.devices.failures import describe_fault
from kernel_gym.devices.hip_build import compile_hip
from kernel_gym.devices.sim import memory as sim_memory
from kernel_gym.devices.sim.facts import read_kernels
from kernel_gym.devices.sim.outputs import read_outputs
from kernel_gym.devices.sim.toolchain import HipToolchain, MissingToolchain, hip_toolchain
from kernel_gym.devices.sim.worker import SimWorker
from kernel_gym.hardware import SIMULATED
from kernel_gym.protocol import device as device_messages
from kernel_gym.protocol import worker as messages
from kernel_gym.protocol.fields import TensorOnDevice
from kernel_gym.protocol.request import Request, encode
from kernel_gym.records import Clock, KernelFacts
from kernel_gym.sandbox.channel import ChannelError
from kernel_gym.sandbox.confine import Limits
from kernel_gym.sandbox.spawn import Family, TemplateError, shared_template
from kernel_gym.tasks.problem import Scale, TensorArg, Value
from kernel_gym.tasks.task import Task

LOAD_TIMEOUT = 30.0
CALL_TIMEOUT = 30.0
LAUNCH_LIMIT = 10.0
LOST_PATIENCE = 5.0
"""For a simulated GPU whose worker has ended or does not answer."""
MEMORY = 512 << 20
"""Live bytes of one simulated GPU: workloads here are small twins, of 5 MB at most."""
WORKER_LIMITS = Limits(memory=5 << 28, home_size=256 << 20, processes=64, one_process=True)
"""Of a worker. Honest ones hold up to 0.3 GiB, of which most is Python's own."""
FAMILY_MEMORY = 3 << 29
"""Bytes that a candidate's worker, its compiler and its simulated GPU may hold together."""


class SimDevice:
    """A simulated GPU: deterministic, on any machine. Its times are modelled.

    Args:
        threads: of the host, for workgroups.
        arch: a key of :data:`~kernel_gym.hardware.SIMULATED`.
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
        self._budget = None if trusted else HostBudget()
        self._family = None if trusted else Family(secrets.token_hex(8), FAMILY_MEMORY)
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
            "same_samples": trusted,  # a baseline's time must not depend on what was timed before
            "arch": arch,
        }
        device_end, worker_end = socket.socketpair()
        cache = [str(cache_folder("triton"))] if trusted else []
        environment = {"TRITON_CACHE_DIR": cache[0]} if trusted else {}
        try:
            self._device = template.fork(
                "device", [memory, device_end.fileno()], options, family=self._family
            )
            self._child = template.fork(
                "worker",
                [worker_end.fileno()],
                {"arch": arch},
                WORKER_LIMITS,
                environment,
                trusted,
                cache,
                self._family,
            )
            # Not as an option: the template, of which the worker is a copy, reads these.
            header, _ = encode(device_messages.SeedSamples(seed))
            self._device.channel.request(header, timeout=LAUNCH_LIMIT)
            ready = self._child.channel.recv(LOAD_TIMEOUT)
        except (TemplateError, ChannelError) as error:
            raise InfraError(f"a worker could not be started: {error}") from error
        finally:
            os.close(memory)
            device_end.close()
            worker_end.close()
        self._worker = SimWorker(self._child, self._device, self._budget)
        self.confinement: dict[str, Any] = ready.header["confinement"]

    def load(self, source: str, language: str | None = None) -> Failed | None:
        """Builds and loads the candidate."""
        request = messages.LoadOnSimulator(
            language or self._task.language, self._task.entry, source
        )
        if self._task.language == "hip":
            built = compile_hip(source, self._arch, LOAD_TIMEOUT, self._budget, self._family)
            if isinstance(built, Failed):
                return built
            assembler, library = built.results
            problem = self._task.problem
            first = len(problem.args)
            outputs = range(first, first + len(problem.outputs))
            request = replace(request, outputs=[*outputs], assembler=assembler, library=library)
        answer = self._worker.ask(request, LOAD_TIMEOUT)
        return answer if isinstance(answer, Failed) else None

    def call(
        self,
        inputs: Mapping[str, Value],
        dims: Mapping[str, int],
        noop: bool = False,
        audit: Audit = Audit.OFF,
    ) -> Call | Failed:
        """Calls the candidate once on fresh device copies of the inputs."""
        if self._worker.dead:
            return self._worker.dead
        self._ask_device(device_messages.BeginCall(noop, str(audit)))
        try:
            args, buffers = self._place_inputs(inputs)
            if self._task.language == "hip":
                args += self._launcher_arguments(dims)
        except _DeviceFull as error:
            return self._worker.fail(Failed(FailureKind.RUNTIME, str(error)))
        answer = self._worker.ask(messages.CallOnSimulator(args), CALL_TIMEOUT)
        try:
            result = self._collect(answer, inputs, dims, buffers)
            for address in (*buffers.values(), *self._outputs):
                self._ask_device(device_messages.Free(address))
        except DeviceLostError as error:
            return self._worker.lost_device(error)
        return result

    def compile(self, calls: Sequence[SketchedCall]) -> Failed | None:
        """Nothing: nobody waits for this device."""
        return None

    def facts(self) -> tuple[KernelFacts, ...]:
        """What the compiler made of the kernels of the last call."""
        try:
            return read_kernels(self._ask_device(device_messages.ReadFacts())["kernels"])
        except DeviceLostError:  # nothing is judged by them
            return ()

    def close(self) -> None:
        """Ends worker and GPU."""
        with contextlib.suppress(TemplateError):
            self._child.close()
            self._device.close()

    # -- the call, step by step ----------------------------------------------------------------

    def _place_inputs(
        self, inputs: Mapping[str, Value]
    ) -> tuple[messages.DeviceArguments, dict[str, int]]:
        args: messages.DeviceArguments = []
        buffers: dict[str, int] = {}
        self._outputs: list[int] = []
        for name, value in inputs.items():
            if not isinstance(value, torch.Tensor):
                args.append(messages.Scalar(value))
                continue
            offset = value.storage_offset() * value.itemsize
            size = value.untyped_storage().nbytes()
            start = self._allocate(size, f"input {name!r}")
            buffers[name] = start
            self._view(start, size).copy_(_storage_bytes(value))
            args.append(
                TensorOnDevice(
                    int(start + offset), tuple(value.shape), tuple(value.stride()), value.dtype
                )
            )
        return args, buffers

    def _launcher_arguments(self, dims: Mapping[str, int]) -> messages.DeviceArguments:
        """HIP: preallocated outputs, then sizes."""
        problem = self._task.problem
        args: messages.DeviceArguments = []
        shapes = problem.output_shapes(dims)
        for output in problem.outputs:
            like = torch.empty(shapes[output.name], dtype=output.dtype, device="meta")
            address = self._allocate(like.nbytes, f"output {output.name!r}")
            self._outputs.append(address)
            args.append(TensorOnDevice(address, tuple(like.shape), like.stride(), like.dtype))
        args += [messages.Scalar(size) for size in problem.c_sizes(dims).values()]
        return args

    def _collect(
        self,
        answer: dict[str, Any] | Failed,
        inputs: Mapping[str, Value],
        dims: Mapping[str, int],
        buffers: dict[str, int],
    ) -> Call | Failed:
        record = self._ask_device(device_messages.EndCall())
        if record["fault"]:
            return self._worker.fail(describe_fault(record["fault"]))
        if isinstance(answer, Failed):
            return answer
        stated = stated_outputs(self._task.problem, dims)
        inputs_at = {
            start: "" if name in self._in_place else name for name, start in buffers.items()
        }
        try:
            with reading_an_answer():
                said = parse_call(answer, stated).outputs
                outputs = read_outputs(said, stated, inputs_at, self._locate, self._view)
        except BadAnswerError as error:
            return self._worker.fail(Failed(FailureKind.RUNTIME, str(error)))
        return Call(
            outputs=outputs,
            seconds=record["seconds"],
            launches=record["launches"],
            modified_inputs=self._modified(inputs, buffers),
            refused=tuple(record["refused"]),
            retuned=record["tuned"],
            kernels=read_kernels(record["kernels"]),
            launch_seconds=record["launch_seconds"],
            codes=frozenset(record["codes"]),
            audited=frozenset(record["audited"]),
        )

    def _locate(self, address: int, size: int) -> int | None:
        """Where the live allocation begins that holds a range whole; None when there is none."""
        allocation = self._ask_device(device_messages.Locate(address, size))["allocation"]
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
        answer = self._ask_device(device_messages.AllocateForJudge(size, label))
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

    def _ask_device(self, request: Request) -> dict[str, Any]:
        timeout = LOST_PATIENCE if self._worker.dead else LAUNCH_LIMIT * 3
        try:
            return self._device.channel.request(encode(request)[0], timeout=timeout).header
        except ChannelError as error:
            raise DeviceLostError(f"the simulated device failed: {error}") from error


class _DeviceFull(Exception):
    """No room for the judge's buffers beside what the candidate holds."""


def _storage_bytes(tensor: torch.Tensor) -> torch.Tensor:
    storage = tensor.untyped_storage()
    return torch.empty(0, dtype=torch.uint8).set_(storage, 0, (storage.nbytes(),), (1,))
