"""Compiles a Triton candidate for a GPU that this process has not opened.

A GPU context takes a fraction of a second to make and more of it while other processes make
theirs, and most early candidates do not compile. So the worker first plays the GPU: tensors
without bytes, a driver that compiles for the true target and launches nothing. The compiled kernels
stay in the worker's folder, where the real run finds them.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget

from kernel_gym.sandbox import failures
from kernel_gym.worker import triton_module
from kernel_gym.worker.gpu.launches import without_tuning
from kernel_gym.worker.sim import cuda_facade
from kernel_gym.worker.sim.function_mode import GuardlessMode
from kernel_gym.worker.sim.tensor import DeviceMode, DeviceTensor, Memory
from kernel_gym.worker.sim.triton_driver import SimDriver

_FIRST_ADDRESS, _ALIGNMENT = 1 << 32, 512
_MOST_THREADS = 1024


class NoDevice:
    """Takes every request and does nothing, but has no more memory than the GPU.

    Args:
        properties: of the GPU, as `kernel_gym.devices.gpu.vendors.reported` gives them.
    """

    capturing = False

    def __init__(self, properties: dict[str, Any]) -> None:
        self.allocated = self.most_allocated = 0
        self._next, self._sizes = _FIRST_ADDRESS, dict[int, int]()
        self.reported = SimpleNamespace(**properties)
        spec = SimpleNamespace(
            compute_units=self.reported.multi_processor_count,
            wavefront=self.reported.warp_size,
            lds_bytes=self.reported.shared_memory,
        )
        self.properties = SimpleNamespace(
            arch=self.reported.arch,
            full_arch=self.reported.arch,
            name=self.reported.name,
            minor=self.reported.minor,
            memory_bytes=self.reported.total_memory,
            l2_bytes=self.reported.L2_cache_size,
            clock_khz=1_000_000,
            memory_clock_khz=1_000_000,
            bus_bits=4096,
            spec=spec,
        )

    def allocate(self, size: int) -> int:
        """An address where nothing is ever read.

        Raises:
            torch.OutOfMemoryError: a candidate that asks until there is no more gets its answer.
        """
        if self.allocated + size > self.properties.memory_bytes:
            raise torch.OutOfMemoryError("out of memory")
        address, self._sizes[self._next] = self._next, size
        self._next += -(-max(size, 1) // _ALIGNMENT) * _ALIGNMENT
        self.allocated += size
        self.most_allocated = max(self.most_allocated, self.allocated)
        return address

    def free(self, address: int) -> None:
        """Gives an allocation back."""
        self.allocated -= self._sizes.pop(address, 0)

    def __getattr__(self, name: str) -> Any:
        return lambda *_: 0


class _Driver(SimDriver):
    """Compiles for the true target; loads and launches nothing."""

    def __init__(self, device: NoDevice, target: GPUTarget) -> None:
        super().__init__(device)  # type: ignore[arg-type]
        self._target = target
        self.utils.load_binary = lambda *_: (None, None, 0, 0, _MOST_THREADS)  # type: ignore[method-assign]

    def launcher_cls(self, src: Any, metadata: Any) -> Any:
        """Launches nothing."""
        return lambda *args, **kwargs: None

    def get_current_target(self) -> GPUTarget:
        """The GPU's own."""
        return self._target


def rehearse(
    source: str, entry: str, calls: list[list[dict[str, Any]]], properties: dict[str, Any]
) -> dict[str, Any] | None:
    """Loads a candidate and calls it, so that its kernels are compiled.

    Args:
        source: the candidate.
        entry: its entry point.
        calls: arguments of each call, of which only shapes, strides, types and values matter.
        properties: of the GPU: as `kernel_gym.devices.gpu.vendors.reported` gives them.

    Returns:
        The description of a failure to build, or of the host's memory used up, which takes a minute
        to find out again. Any other failure may be one of the play: it is left for the real run.
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
        found = failures.describe(error)
        final = found["kind"] == failures.COMPILE or isinstance(error, MemoryError)
        return found if final else None
    finally:
        undo()
    return None


def _argument(arg: dict[str, Any], device: NoDevice) -> Any:
    if "value" in arg:
        return arg["value"]
    dtype = getattr(torch, arg["dtype"])
    meta = torch.empty_strided(arg["shape"], arg["strides"], dtype=dtype, device="meta")
    address = _FIRST_ADDRESS + arg["skip"] * meta.element_size()
    return DeviceTensor(meta, Memory(device, address, arg["span"], owned=False))


def _install(device: NoDevice) -> Any:
    """Puts the play in the place of torch's and Triton's GPU; returns what takes it away again."""
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
