"""`cuda:N` and `rocm:N`: a real GPU, one class over torch for both makers. Times are measured.

The judge draws inputs, computes the oracle and compares on the same GPU, in its own process and its
own memory. Values of several evaluations may be checked at one time; timing has the GPU for itself.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence

import torch

from kernel_gym.devices.base import DeviceLostError, InfraError, MemoryUsedUpError, Turn
from kernel_gym.devices.cache import cache_folder
from kernel_gym.devices.gpu.arena import Arena
from kernel_gym.devices.gpu.host import Host
from kernel_gym.devices.gpu.lock import GpuLock
from kernel_gym.devices.gpu.runtime import FREE_SHARE, crowded, give_back, reserve
from kernel_gym.devices.gpu.session import GpuSession
from kernel_gym.devices.gpu.vendors import (
    arch_name,
    data_sheet,
    device_files,
    find_compiler,
    gpu_file,
    reported,
    uuid_of,
    vendor_here,
)
from kernel_gym.devices.gpu.worker import Worker
from kernel_gym.records import Clock
from kernel_gym.sandbox.spawn import shared_template
from kernel_gym.tasks.problem import Scale
from kernel_gym.tasks.task import Task

ARENA_BYTES = 4 << 30
RESERVED_BYTES = 4 << 30
"""What the judge asks of the driver ahead: the inputs and answers of most evaluations."""
ROOM_SHARE = 1 / 8
"""Of a GPU's memory: no candidate for a task of ours needs more."""
HELD_BYTES = 2 << 30
"""Memory that torch may keep in the judge on a crowded GPU."""
FULL = "the GPU's memory is used up; run fewer evaluators on it"


class GpuDevice:
    """One GPU of this machine.

    Args:
        name: "cuda:N" or "rocm:N".
        by_handle: pass device memory to workers by handle; otherwise through host memory.

    Raises:
        InfraError: there is no such GPU, its peaks are not known, or it cannot be used.
    """

    clock = Clock.MEASURED
    scale = Scale.FULL

    def __init__(self, name: str, by_handle: bool = True) -> None:
        self.name = name
        self.vendor = vendor_here()
        self.index = int(name.partition(":")[2])
        try:
            torch.cuda.set_device(self.index)
            self._properties = torch.cuda.get_device_properties(self.index)
            torch.zeros(1, device="cuda")
        except (RuntimeError, AssertionError) as error:
            raise InfraError(f"{name} cannot be used: {str(error).splitlines()[0]}") from error
        spec = data_sheet(self._properties.name)
        if spec is None:
            raise InfraError(
                f"{name} is a {self._properties.name}, whose peaks are not in "
                "kernel_gym/devices/gpu/vendors.py; add its data sheet there"
            )
        self.spec = spec
        self.arch = arch_name(self.vendor, self._properties)
        self.where = torch.device("cuda", self.index)
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        torch.backends.cuda.enable_cudnn_sdp(False)  # new shapes took 45 ms each with it
        self.arena = Arena(ARENA_BYTES, by_handle)
        if not crowded():
            reserve(RESERVED_BYTES)
        self._uuid = uuid_of(self._properties)
        self._file = gpu_file(self.vendor, self._uuid)
        self.lock = GpuLock(self._uuid or name)
        self._spare: Worker | None = None
        self._resident: Worker | None = None
        self._candidate: GpuSession | None = None

    @property
    def languages(self) -> Sequence[str]:
        """HIP needs hipcc, or nvcc on NVIDIA."""
        return ("triton", "hip") if find_compiler(self.vendor) else ("triton",)

    @property
    def facts(self) -> str:
        """One paragraph for prompts."""
        spec = self.spec
        unit = "compute units" if self.vendor.wavefront == 64 else "multiprocessors"
        lanes = "wavefronts" if self.vendor.wavefront == 64 else "warps"
        tera = spec.matrix_rate[torch.float16] / 1e12
        return (
            f"{spec.name} ({self.arch}): {spec.compute_units} {unit}, {lanes} of "
            f"{spec.wavefront} lanes, {spec.lds_bytes // 1024} KiB shared memory each, "
            f"{spec.memory_bandwidth / 1e12:.2f} TB/s memory, {tera:.0f} TFLOP/s fp16/bf16 matrix, "
            f"{spec.vector_rate / 1e12:.0f} TFLOP/s fp32 vector."
        )

    def versions(self) -> dict[str, str]:
        """Versions of everything that decides a result."""
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
    def turn(self, kind: Turn) -> Iterator[None]:
        """Waits for the GPU, or does not: to build needs the host alone."""
        torch.cuda.set_device(self.index)  # a thread starts with the first one
        if kind is Turn.FREE:
            try:
                yield
            except torch.OutOfMemoryError as error:
                raise InfraError(FULL) from error
            return
        with self.lock.alone():
            try:
                yield
            except (torch.OutOfMemoryError, MemoryUsedUpError) as error:
                raise self._used_up(error) from error
            finally:
                give_back(HELD_BYTES)

    def _used_up(self, error: Exception) -> InfraError:
        """Who has the memory that work of ours did not get: the candidate, or other evaluators.

        The largest of our tasks take much of a GPU, and others' memory comes and goes: that there
        is room afterwards does not show whose doing it was. What the candidate held does.
        """
        text = str(error) if isinstance(error, MemoryUsedUpError) else FULL
        candidate, self._candidate = self._candidate, None
        held = candidate.evict() if candidate is not None else 0
        _, total = torch.cuda.mem_get_info()
        if held > FREE_SHARE * total:
            return DeviceLostError(f"the candidate held {held >> 20} MiB of the GPU: {text}")
        return InfraError(text)

    def usable(self, task: Task) -> bool:
        """Whether memory is left for an evaluation, and a worker of ours gets its context."""
        free, total = torch.cuda.mem_get_info()
        unused = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
        if free + unused < ROOM_SHARE * total:
            return False
        try:
            session = GpuSession(task, self._start(trusted=True), self._host, Worker.close)
            failed = session.open()
        except InfraError:
            return False
        session.close()
        return failed is None

    def open(self, task: Task, trusted: bool = False, seed: int = 0) -> GpuSession:
        """A fresh worker; one for our own sources is used again, for one task after another.

        Args:
            task: what its candidates solve.
            trusted: whether the source is ours.
            seed: not needed: times are measured.

        Raises:
            InfraError: a worker could not be started.
        """
        if trusted:
            worker, self._resident = self._resident or self._start(trusted=True), None
            return GpuSession(task, worker, self._host, self._keep)
        worker, self._spare = self._spare or self._start(), None
        self._candidate = GpuSession(task, worker, self._host, Worker.close)
        self._spare = self._start()
        return self._candidate

    def close(self) -> None:
        """Ends the workers that wait and gives the shared memory back."""
        for worker in filter(None, (self._spare, self._resident)):
            worker.close()
        self._spare = self._resident = None
        self.arena.close()

    def _keep(self, worker: Worker) -> None:
        """Takes back a worker that has run nothing but our own sources."""
        if self._resident is None:
            self._resident = worker
        else:
            worker.close()

    @property
    def _host(self) -> Host:
        properties = reported(self.vendor, self._properties)
        return Host(self.arena, self.vendor, self.arch, properties)

    def _start(self, trusted: bool = False) -> Worker:
        """Forks a worker; its context it makes when it is needed, or at once for ours."""
        return Worker(
            shared_template(),
            self.arena,
            environment={name: self._visible(name) for name in self.vendor.visible}
            | dict(self.vendor.environment),
            flush=self.spec.flush_bytes,
            devices=device_files(self.vendor, self._file),
            cache=str(cache_folder("gpu")) if trusted else "",
        )

    def _visible(self, variable: str) -> str:
        """This GPU in the terms of a variable that may already choose some of the machine's."""
        if self._file:
            return self._uuid  # an index counts the GPUs that a worker can open
        chosen = [part for part in os.environ.get(variable, "").split(",") if part]
        return chosen[self.index] if self.index < len(chosen) else str(self.index)
