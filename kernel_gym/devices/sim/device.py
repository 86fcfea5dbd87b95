"""The simulated devices, such as `sim:gfx942`, seen from the judge.

Each session has two processes: the untrusted worker, and the simulated GPU, which the judge trusts.
The judge writes inputs and reads outputs through its own mapping of the GPU's memory.
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
    believed_outputs,
    parse_call,
    reading_an_answer,
    stated_outputs,
)
from kernel_gym.devices.base import (
    Audit,
    Call,
    DeviceLostError,
    Exclusivity,
    Failed,
    FailureKind,
    InfraError,
    SketchedCall,
)
from kernel_gym.devices.budget import HostBudget, processor_seconds
from kernel_gym.devices.cache import cache_folder
from kernel_gym.devices.description import DeviceDescription, TimingMethod
from kernel_gym.devices.failures import describe_fault
from kernel_gym.devices.hip_build import compile_hip, launcher_outputs
from kernel_gym.devices.operators import operators_for
from kernel_gym.devices.placement import in_place_inputs, sketched_outputs, storage_bytes
from kernel_gym.devices.sim import memory as sim_memory
from kernel_gym.devices.sim.facts import read_kernels
from kernel_gym.devices.sim.outputs import read_outputs
from kernel_gym.devices.sim.toolchain import HipToolchain, hip_toolchain
from kernel_gym.devices.sim.worker import SimWorkerHandle
from kernel_gym.hardware import SIMULATED
from kernel_gym.protocol import device as device_messages
from kernel_gym.protocol import worker as messages
from kernel_gym.protocol.fields import TensorOnDevice
from kernel_gym.protocol.request import Request, encode
from kernel_gym.records import Clock, KernelFacts
from kernel_gym.sandbox.channel import ChannelError
from kernel_gym.sandbox.confine import WorkerLimits
from kernel_gym.sandbox.spawn import Family, TemplateError, shared_template
from kernel_gym.sim.constants import TIMING_MODEL_VERSION
from kernel_gym.tasks.problem import Scale, Value
from kernel_gym.tasks.task import Task

LOAD_TIMEOUT = 30.0
CALL_TIMEOUT = 30.0
LAUNCH_LIMIT = 10.0
LOST_PATIENCE = 5.0
"""Seconds for an answer of a simulated GPU whose worker has ended or does not answer."""
MEMORY = 512 << 20
"""Live bytes of one simulated GPU. The small twins of workloads take 5 MB at most."""
WORKER_LIMITS = WorkerLimits(memory=5 << 28, home_size=256 << 20, processes=64, one_process=True)
"""Limits of a worker. Honest workers hold up to 0.3 GiB, most of it by Python itself."""
FAMILY_MEMORY = 3 << 29
"""Bytes of host memory for a candidate's worker, compiler and simulated GPU together."""


class SimDevice:
    """A simulated GPU: deterministic, on any machine. Its times are modelled.

    Args:
        threads: Host threads that run workgroups.
        arch: A key of :data:`~kernel_gym.hardware.SIMULATED`.
    """

    noise_file = None

    def __init__(self, threads: int = 1, arch: str = "gfx942") -> None:
        self._threads = threads
        self.description = describe_simulated(arch)

    def versions(self) -> dict[str, str]:
        """Returns the versions of everything that decides a result."""
        import triton

        import kernel_gym

        toolchain = hip_toolchain(self.description.arch)
        clang = toolchain.version if isinstance(toolchain, HipToolchain) else "none"
        return {
            "kernel_gym": kernel_gym.__version__,
            "torch": torch.__version__,
            "triton": triton.__version__,
            "clang": clang,
            "timing_model": TIMING_MODEL_VERSION,
        }

    def held(self, exclusivity: Exclusivity) -> contextlib.AbstractContextManager[None]:
        """Nobody has to wait, as each session has its own simulated GPU."""
        return contextlib.nullcontext()

    def usable(self, task: Task) -> bool:
        """Always true, as each session starts a new simulated GPU."""
        return True

    def open(
        self,
        task: Task,
        trusted: bool = False,
        seed: int = 0,
        resident: bool = False,
        launch_limit: float = LAUNCH_LIMIT,
    ) -> SimSession:
        """Starts a worker and a simulated GPU for sources that solve a task.

        Args:
            task: What the sources solve.
            trusted: Whether the source is the project's own.
            seed: Decides which workgroups the timing model samples. The worker does not know it.
            resident: Whether the worker stays: it has no budget of seconds.
            launch_limit: Host seconds until a launch is stopped.

        Raises:
            InfraError: A process could not be started.
        """
        arch = self.description.arch
        return SimSession(task, self._threads, trusted, seed, arch, resident, launch_limit)

    def free_unused_memory(self) -> None:
        """Does nothing: sessions hold all memory."""

    def synchronize(self) -> None:
        """Does nothing: the judge computes on the CPU."""

    def close(self) -> None:
        """Does nothing: sessions hold everything."""


def describe_simulated(arch: str) -> DeviceDescription:
    """Describes a simulated device. HIP needs a clang with ROCm's device libraries."""
    spec = SIMULATED[arch]
    has_hip = isinstance(hip_toolchain(arch), HipToolchain)
    return DeviceDescription(
        name=f"sim:{arch}",
        hardware=f"sim:{arch}",
        spec=spec,
        clock=Clock.MODELLED,
        timing=TimingMethod.REPORTED,
        scale=Scale.SIM,
        languages=("triton", "hip") if has_hip else ("triton",),
        facts=spec.facts,
        torch_device=torch.device("cpu"),
        arch=arch,
        audits=True,
    )


class SimSession:
    """One candidate in one worker, with its own simulated GPU."""

    timed = None

    def __init__(
        self,
        task: Task,
        threads: int,
        trusted: bool,
        seed: int = 0,
        arch: str = "gfx942",
        resident: bool = False,
        launch_limit: float = LAUNCH_LIMIT,
    ) -> None:
        self._task, self._arch = task, arch
        self._budget = None if trusted or resident else HostBudget()
        self._family = None if trusted else Family(secrets.token_hex(8), FAMILY_MEMORY)
        self._in_place = in_place_inputs(task)
        template = shared_template()
        memory = sim_memory.create_file()
        self._memory = mmap.mmap(memory, sim_memory.ARENA_SIZE)
        options = {
            "threads": threads,
            "memory": MEMORY,
            "launch_limit": launch_limit,
            # A baseline's time must not depend on what was timed before.
            "same_samples": trusted or resident,
            "same_addresses": trusted or resident,
            "arch": arch,
            "operators": operators_for(task, resident),
            "margin": sim_memory.GUARD if task.problem.margin else 0,
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
                {"arch": arch, "operators": task.problem.recorded},
                WORKER_LIMITS,
                environment,
                trusted,
                cache,
                self._family,
            )
            # Not an option of the fork: the template reads options, and the worker is a copy of it.
            header, _ = encode(device_messages.SeedSamples(seed))
            self._device.channel.request(header, timeout=LAUNCH_LIMIT)
            ready = self._child.channel.recv(LOAD_TIMEOUT)
        except (TemplateError, ChannelError) as error:
            raise InfraError(f"a worker could not be started: {error}") from error
        finally:
            os.close(memory)
            device_end.close()
            worker_end.close()
        self._worker = SimWorkerHandle(self._child, self._device, self._budget)
        self.confinement: dict[str, Any] = ready.header["confinement"]

    @property
    def device_seconds(self) -> float:
        """Processor seconds of the simulated GPU so far."""
        return processor_seconds(self._device.pid)

    def load(self, source: str, language: str | None = None) -> Failed | None:
        """Builds and loads a source."""
        request = messages.LoadOnSimulator(
            language or self._task.language, self._task.entry, source
        )
        if self._task.language == "hip":
            built = compile_hip(source, self._arch, LOAD_TIMEOUT, self._budget, self._family)
            if isinstance(built, Failed):
                return built
            assembler, library = built.results
            outputs = launcher_outputs(self._task.problem)
            request = replace(request, outputs=outputs, assembler=assembler, library=library)
        answer = self._worker.ask(request, LOAD_TIMEOUT)
        return answer if isinstance(answer, Failed) else None

    def call(
        self,
        inputs: Mapping[str, Value],
        dims: Mapping[str, int],
        noop: bool = False,
        audit: Audit = Audit.OFF,
        believed: bool = False,
    ) -> Call | Failed:
        """Calls the candidate once on fresh device copies of the inputs.

        With `believed`, the outputs are those that the worker states: of a suite's own code only,
        before its task is known.
        """
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
            result = self._collect(answer, inputs, dims, buffers, believed)
            for address in (*buffers.values(), *self._outputs):
                self._ask_device(device_messages.Free(address))
        except DeviceLostError as error:
            return self._worker.lost_device(error)
        return result

    def compile(self, calls: Sequence[SketchedCall]) -> Failed | None:
        """Does nothing: compiling ahead would save no time here."""
        return None

    def facts(self) -> tuple[KernelFacts, ...]:
        """Returns what the compiler reported about the kernels of the last call."""
        try:
            return read_kernels(self._ask_device(device_messages.ReadFacts())["kernels"])
        except DeviceLostError:  # no verdict depends on the facts
            return ()

    def cross_facts(self, arch: str) -> tuple[KernelFacts, ...]:
        """Returns nothing: the simulator compiles for its own architecture only."""
        return ()

    def close(self) -> None:
        """Ends the worker and the simulated GPU."""
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
            self._view(start, size).copy_(storage_bytes(value))
            args.append(
                TensorOnDevice(
                    int(start + offset), tuple(value.shape), tuple(value.stride()), value.dtype
                )
            )
        return args, buffers

    def _launcher_arguments(self, dims: Mapping[str, int]) -> messages.DeviceArguments:
        """Describes what HIP launchers take after the inputs: allocated outputs, then sizes."""
        problem = self._task.problem
        args: messages.DeviceArguments = []
        for name, like in sketched_outputs(problem, dims).items():
            address = self._allocate(like.nbytes, f"output {name!r}")
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
        believed: bool,
    ) -> Call | Failed:
        record = self._ask_device(device_messages.EndCall())
        if record["fault"]:
            return self._worker.fail(describe_fault(record["fault"]))
        if isinstance(answer, Failed):
            return answer
        inputs_at = {
            start: "" if name in self._in_place else name for name, start in buffers.items()
        }
        try:
            with reading_an_answer():
                problem = self._task.problem
                stated = believed_outputs(answer) if believed else stated_outputs(problem, dims)
                described = parse_call(answer, stated).outputs
                outputs = read_outputs(described, stated, inputs_at, self._locate, self._view)
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
        """Returns the start of the live allocation that contains a whole range, or None."""
        allocation = self._ask_device(device_messages.Locate(address, size))["allocation"]
        return allocation and allocation["start"]

    def _modified(self, inputs: Mapping[str, Value], buffers: dict[str, int]) -> tuple[str, ...]:
        changed = []
        for name, start in buffers.items():
            value = inputs[name]
            assert isinstance(value, torch.Tensor)
            shadow = storage_bytes(value)
            current = self._view(start, shadow.numel())
            if name not in self._in_place and not torch.equal(current, shadow):
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
        """Returns bytes of the device's memory, uint8 [size]."""
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
    """The candidate holds so much memory that the judge's buffers do not fit."""
