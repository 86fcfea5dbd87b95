"""A real GPU (`cuda:N`, `rocm:N`), one class over PyTorch for both vendors. Times are measured.

The judge draws inputs, computes the oracle and compares values on the same GPU, in its own process
and its own memory. Building runs beside other evaluations; everything on the GPU runs alone.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Set
from pathlib import Path

import torch

from kernel_gym.devices.base import (
    DeviceLostError,
    Exclusivity,
    InfraError,
    MemoryUsedUpError,
)
from kernel_gym.devices.cache import cache_folder
from kernel_gym.devices.gpu.arena import GpuArena
from kernel_gym.devices.gpu.host import Host
from kernel_gym.devices.gpu.lock import GpuLock
from kernel_gym.devices.gpu.runtime import FREE_SHARE, crowded, give_back, reserve
from kernel_gym.devices.gpu.session import GpuSession
from kernel_gym.devices.gpu.shared_memory import arena_bytes
from kernel_gym.devices.gpu.vendors import (
    describe_gpu,
    device_files,
    gpu_file,
    reported,
    uuid_of,
    vendor_here,
)
from kernel_gym.devices.gpu.worker import GpuWorkerProcess, start_upstream
from kernel_gym.devices.operators import Operators, operators_for, operators_of_candidate
from kernel_gym.sandbox.spawn import Child, shared_template
from kernel_gym.tasks.task import Task

RESERVED_BYTES = 4 << 30
"""Memory that the judge allocates ahead. Inputs and answers of most evaluations fit into it."""
ROOM_SHARE = 1 / 8
"""Share of a GPU's memory that an evaluation may need."""
HELD_BYTES = 2 << 30
"""Bytes that PyTorch may keep unused in the judge's process on a crowded GPU."""
UPSTREAM_BYTES = 16 << 30
"""Bytes of the GPU for a program of a suite, whose tests have the sizes of the suite."""
FULL = "the GPU's memory is used up; run fewer evaluators on it"


class GpuDevice:
    """One GPU of this machine.

    Args:
        name: "cuda:N" or "rocm:N".
        by_handle: Share device memory with workers by handle; otherwise through host memory.

    Raises:
        InfraError: There is no such GPU, its data sheet is not known, or it cannot be used.
    """

    def __init__(self, name: str, by_handle: bool = True) -> None:
        self.vendor = vendor_here()
        self.index = int(name.partition(":")[2])
        try:
            torch.cuda.set_device(self.index)
            self._properties = torch.cuda.get_device_properties(self.index)
            torch.zeros(1, device="cuda")
        except (RuntimeError, AssertionError) as error:
            raise InfraError(f"{name} cannot be used: {str(error).splitlines()[0]}") from error
        self.description = describe_gpu(name, self._properties)
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        torch.backends.cuda.enable_cudnn_sdp(False)  # new shapes took 45 ms each with it
        self.arena = GpuArena(arena_bytes(), by_handle)
        if not crowded():
            reserve(RESERVED_BYTES)
        self._uuid = uuid_of(self._properties)
        self._file = gpu_file(self.vendor, self._uuid)
        self.lock = GpuLock(self._uuid or name)
        self._spare: GpuWorkerProcess | None = None
        self._resident: GpuWorkerProcess | None = None
        self._candidate: GpuSession | None = None

    @property
    def noise_file(self) -> Path:
        """Where evaluators of this GPU share the last measurement of its noise floor."""
        return self.lock.state

    def versions(self) -> dict[str, str]:
        """Returns the versions of everything that decides a result."""
        import triton

        import kernel_gym

        return {
            "kernel_gym": kernel_gym.__version__,
            "torch": torch.__version__,
            "triton": triton.__version__,
            "runtime": str(torch.version.hip or torch.version.cuda),
            "gpu": self._properties.name,
        }

    @contextlib.contextmanager
    def held(self, exclusivity: Exclusivity) -> Iterator[None]:
        """Holds the GPU alone or beside others, or not at all: an evaluation builds on the host."""
        torch.cuda.set_device(self.index)  # a new thread starts with the first GPU
        if exclusivity is Exclusivity.FREE:
            try:
                yield
            except torch.OutOfMemoryError as error:
                raise InfraError(FULL) from error
            return
        shared = exclusivity is Exclusivity.SHARED
        with self.lock.shared() if shared else self.lock.alone():
            try:
                yield
            except (torch.OutOfMemoryError, MemoryUsedUpError) as error:
                raise self._used_up(error) from error
            finally:
                give_back(HELD_BYTES)

    def _used_up(self, error: Exception) -> InfraError:
        """Decides whether the candidate or other evaluators hold the memory that is missing.

        The largest tasks take much of a GPU, and the memory of other processes comes and goes. So
        free memory afterwards proves nothing. The amount that the candidate held does.
        """
        text = str(error) if isinstance(error, MemoryUsedUpError) else FULL
        candidate, self._candidate = self._candidate, None
        held = candidate.evict() if candidate is not None else 0
        _, total = torch.cuda.mem_get_info()
        if held > FREE_SHARE * total:
            return DeviceLostError(f"the candidate held {held >> 20} MiB of the GPU: {text}")
        return InfraError(text)

    def usable(self, task: Task) -> bool:
        """Whether memory is left for an evaluation, and a trusted worker gets its context."""
        free, total = torch.cuda.mem_get_info()
        unused = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
        if free + unused < ROOM_SHARE * total:
            return False
        try:
            session = GpuSession(
                task, self._start(trusted=True), self._host, GpuWorkerProcess.close
            )
            failed = session.open()
        except InfraError:
            return False
        session.close()
        return failed is None

    def open(
        self,
        task: Task,
        trusted: bool = False,
        seed: int = 0,
        resident: bool = False,
        launch_instructions: int | None = None,
    ) -> GpuSession:
        """Opens a session. A candidate gets a fresh worker, trusted sources use one again.

        Args:
            task: What the sources solve.
            trusted: Whether the source is the project's own.
            seed: Not used, as times are measured.
            resident: Whether the source is a suite's own code. Trusted workers stay anyway.
            launch_instructions: Not used: a launch on a GPU cannot be stopped.

        Raises:
            InfraError: A worker could not be started.
        """
        if trusted:
            worker, self._resident = self._resident or self._start(trusted=True), None
            return GpuSession(task, worker, self._host, self._keep)
        operators = operators_for(task, resident)
        if operators is not Operators.NONE:  # spare workers have lost PyTorch's kernels
            permitted = operators_of_candidate(task)
            worker = self._start(operators=operators, permitted=permitted)
            session = GpuSession(task, worker, self._host, GpuWorkerProcess.close, resident)
            if not resident:
                self._candidate = session
            return session
        worker, self._spare = self._spare or self._start(), None
        self._candidate = GpuSession(task, worker, self._host, GpuWorkerProcess.close)
        self._spare = self._start()
        return self._candidate

    def free_unused_memory(self) -> None:
        """Returns memory to the driver if PyTorch keeps too much of it unused."""
        give_back()

    def synchronize(self) -> None:
        """Waits until this process has no work left on the GPU."""
        torch.cuda.synchronize()

    def close(self) -> None:
        """Ends the idle workers and frees the shared memory."""
        for worker in filter(None, (self._spare, self._resident)):
            worker.close()
        self._spare = self._resident = None
        self.arena.close()

    def _keep(self, worker: GpuWorkerProcess) -> None:
        """Takes back a worker that has run trusted sources only."""
        if self._resident is None:
            self._resident = worker
        else:
            worker.close()

    @property
    def _host(self) -> Host:
        properties = reported(self.vendor, self._properties)
        return Host(self.arena, self.vendor, self.description.arch, properties)

    @contextlib.contextmanager
    def upstream(self, output: int, seconds: float, alone: bool) -> Iterator[Child]:
        """Forks a process for a program on files of a suite, see `kernel_gym.imports.upstream`.

        Args:
            output: A descriptor that takes what it prints.
            seconds: Seconds of the wall that it may take.
            alone: Whether nobody else may use the GPU meanwhile, since times matter.
        """
        files = device_files(self.vendor, self._file)
        with self.held(Exclusivity.ALONE if alone else Exclusivity.SHARED):
            child = start_upstream(output, self._environment(), files, UPSTREAM_BYTES, seconds)
            with contextlib.closing(child):
                yield child

    def _start(
        self,
        trusted: bool = False,
        operators: Operators = Operators.NONE,
        permitted: Set[str] = frozenset(),
    ) -> GpuWorkerProcess:
        """Forks a worker. It creates its GPU context when a request needs one."""
        return GpuWorkerProcess(
            shared_template(),
            self.arena,
            environment=self._environment(),
            flush=self.description.spec.flush_bytes,
            devices=device_files(self.vendor, self._file),
            cache=str(cache_folder("gpu")) if trusted else "",
            operators=operators,
            permitted=permitted,
        )

    def _environment(self) -> dict[str, str]:
        """Returns the variables of a worker: they select this GPU and configure the driver."""
        chosen = {name: self._visible(name) for name in self.vendor.visible}
        return chosen | dict(self.vendor.environment)

    def _visible(self, variable: str) -> str:
        """Returns this GPU as a value for an environment variable that selects GPUs."""
        if self._file:
            return self._uuid  # an index counts the GPUs that a worker can open
        chosen = [part for part in os.environ.get(variable, "").split(",") if part]
        return chosen[self.index] if self.index < len(chosen) else str(self.index)
