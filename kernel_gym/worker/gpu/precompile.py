"""Compiles a Triton candidate for a GPU that this process has not opened.

Making a GPU context takes a fraction of a second, and longer while other processes make theirs.
Most early candidates do not compile and need no context. So the worker first runs a candidate on a
stand-in for the GPU: tensors have no bytes, and a driver compiles for the true target and launches
nothing. The compiled kernels stay in the worker's folder, where the real run finds them.
"""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget

from kernel_gym.protocol.worker import ArenaArguments, ArenaTensor, Scalar
from kernel_gym.sandbox import failures
from kernel_gym.worker import triton_module
from kernel_gym.worker.gpu.launches import without_tuning
from kernel_gym.worker.gpu.stand_in_calls import GuardlessMode
from kernel_gym.worker.gpu.stand_in_tensor import DeviceMode, DeviceTensor, Memory
from kernel_gym.worker.sim import cuda_facade
from kernel_gym.worker.sim.triton_driver import SimDriver

_FIRST_ADDRESS, _ALIGNMENT = 1 << 32, 512
_MOST_THREADS = 1024


class NoDevice:
    """Accepts every request and does nothing. It has as much memory as the GPU, and no more.

    Args:
        properties: What the GPU reports, as `kernel_gym.devices.gpu.vendors.reported` returns it.
    """

    capturing = False

    def __init__(self, properties: dict[str, Any]) -> None:
        self.allocated = self.most_allocated = 0
        self._next, self._sizes = _FIRST_ADDRESS, dict[int, int]()
        self.reported = SimpleNamespace(**properties)
        self.properties = host_properties(self.reported)

    def allocate(self, size: int) -> int:
        """Returns an address that nothing ever reads.

        Raises:
            torch.OutOfMemoryError: The GPU does not have so much memory.
        """
        if self.allocated + size > self.properties.memory_bytes:
            raise torch.OutOfMemoryError("out of memory")
        address, self._sizes[self._next] = self._next, size
        self._next += -(-max(size, 1) // _ALIGNMENT) * _ALIGNMENT
        self.allocated += size
        self.most_allocated = max(self.most_allocated, self.allocated)
        return address

    def free(self, address: int) -> None:
        """Frees an allocation."""
        self.allocated -= self._sizes.pop(address, 0)

    def time_of(self, call: Any) -> float:
        """Makes a call that is to be timed, so that its kernels are compiled."""
        call()
        return 0.0

    def trial(self) -> contextlib.AbstractContextManager[None]:
        """Kernels are compared within the context: there is no memory to restore."""
        return contextlib.nullcontext()

    def __getattr__(self, name: str) -> Any:
        return lambda *_: 0


def host_properties(reported: SimpleNamespace) -> SimpleNamespace:
    """Returns the properties of a GPU in the form of `HostProperties` of simulated devices."""
    spec = SimpleNamespace(
        compute_units=reported.multi_processor_count,
        wavefront=reported.warp_size,
        lds_bytes=reported.shared_memory,
    )
    return SimpleNamespace(
        arch=reported.arch,
        full_arch=reported.arch,
        name=reported.name,
        minor=reported.minor,
        memory_bytes=reported.total_memory,
        l2_bytes=reported.L2_cache_size,
        clock_khz=1_000_000,
        memory_clock_khz=1_000_000,
        bus_bits=4096,
        spec=spec,
    )


class _Driver(SimDriver):
    """Compiles for the true target. It loads and launches nothing."""

    def __init__(self, device: NoDevice, target: GPUTarget) -> None:
        super().__init__(device)  # type: ignore[arg-type]
        self._target = target
        self.utils.load_binary = lambda *_: (None, None, 0, 0, _MOST_THREADS)  # type: ignore[method-assign]

    def launcher_cls(self, src: Any, metadata: Any) -> Any:
        """Returns a launcher that launches nothing."""
        return lambda *args, **kwargs: None

    def get_current_target(self) -> GPUTarget:
        """The target of the GPU."""
        return self._target


def precompile(
    source: str, entry: str, calls: list[ArenaArguments], properties: dict[str, Any]
) -> dict[str, Any] | None:
    """Loads a candidate and calls it, so that its kernels are compiled.

    Args:
        source: The candidate.
        entry: Its entry point.
        calls: Arguments of each call. Only shapes, strides, types and scalar values matter.
        properties: What the GPU reports, as `kernel_gym.devices.gpu.vendors.reported` returns it.

    Returns:
        The description of a failure to build, or of exhausted host memory, which the real run would
        take a minute to find again. None otherwise: any other failure may be due to the stand-in,
        so the real run decides.
    """
    device = NoDevice(properties)
    undo = _install(device)
    try:
        with GuardlessMode(device), DeviceMode(device):
            candidate = triton_module.load(source, entry)
            with without_tuning():
                for args in calls:
                    candidate(*[_argument(arg, device) for arg in args])
    except BaseException as error:
        failure = failures.describe(error)
        final = failure["kind"] == failures.COMPILE or isinstance(error, MemoryError)
        return failure if final else None
    finally:
        undo()
    return None


def _argument(arg: Scalar | ArenaTensor, device: NoDevice) -> Any:
    if isinstance(arg, Scalar):
        return arg.value
    meta = torch.empty_strided(arg.shape, arg.strides, dtype=arg.dtype, device="meta")
    address = _FIRST_ADDRESS + arg.offset * meta.element_size()
    return DeviceTensor(meta, Memory(device, address, arg.size, owned=False))


def _install(device: NoDevice) -> Any:
    """Replaces the GPU of torch and Triton by the stand-in; returns a function that undoes it."""
    patched = (torch.cuda, torch.version, triton.testing)
    before = [dict(vars(module)) for module in patched]
    driver = triton.runtime.driver
    active = driver._active
    cuda_facade.install(device)  # type: ignore[arg-type]
    reported = device.reported
    torch.version.hip = reported.hip
    cuda: Any = torch.cuda
    cuda.get_device_properties = lambda device=None: reported
    cuda.get_device_capability = lambda device=None: (reported.major, reported.minor)
    driver.set_active(_Driver(device, GPUTarget(*reported.target)))

    def undo() -> None:
        for module, names in zip(patched, before, strict=True):
            for name in set(vars(module)) - set(names):
                delattr(module, name)
            for name, value in names.items():
                if vars(module).get(name) is not value:
                    setattr(module, name, value)
        driver._active = active

    return undo
