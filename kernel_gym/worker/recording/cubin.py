"""Records launches of Triton kernels that are compiled for an NVIDIA GPU.

The backend compiles as it does for a real GPU. Its launcher is replaced by one that packs the same
arguments: those of the signature, in order. Pointers to scratch memory follow them in the kernel;
kernels that use any are refused, and for others they are null.
"""

from __future__ import annotations

from types import SimpleNamespace

import torch
import triton
from triton.backends.compiler import GPUTarget

from kernel_gym.plans.types import CodeForm, PlanCode
from kernel_gym.worker.recording.recorder import RecordedKernel
from kernel_gym.worker.recording.runtime import RecordingRuntime
from kernel_gym.worker.sim.runtime import DeviceError
from kernel_gym.worker.sim.triton_driver import (
    KernelSource,
    LaunchMetadata,
    SimDriver,
    flatten,
    pack,
)

_SIZES = {"i1": 1, "u1": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "fp16": 2, "bf16": 2}
_SIZES |= {"i32": 4, "u32": 4, "fp32": 4, "f32": 4, "i64": 8, "u64": 8, "fp64": 8, "f64": 8}
_MAX_THREADS = 1024
_ALONE = {
    "num_ctas": 1,
    "global_scratch_size": 0,
    "profile_scratch_size": 0,
    "launch_cooperative_grid": False,
    "launch_pdl": False,
}
"""Values in the metadata of a kernel that a plain launch can start."""


class CubinLauncher:
    """Packs the arguments of one compiled kernel and records its launch."""

    def __init__(
        self, runtime: RecordingRuntime, source: KernelSource, metadata: LaunchMetadata
    ) -> None:
        self._runtime = runtime
        self._types = [str(kind) for kind in flatten(source.signature.values())]
        self._block = (metadata.num_warps * 32, 1, 1)
        for name, value in _ALONE.items():
            if (getattr(metadata, name, value) or value) != value:
                raise DeviceError(f"{metadata.name} has {name}={getattr(metadata, name)}")
        if any(kind.startswith(("tensordesc", "nvTmaDesc")) for kind in self._types):
            raise DeviceError(f"{metadata.name} takes tensor descriptors, which have no plan yet")

    def __call__(self, gx, gy, gz, stream, function, kernel_meta, launch_meta, enter, leave, *args):
        """Called by Triton's JIT for each launch."""
        pairs = zip(self._types, flatten(args), strict=True)
        values = [
            pack(kind, value, 8 if kind.startswith("*") else _SIZES[kind], place)
            for place, (kind, value) in enumerate(pairs)
            if kind != "constexpr"
        ]
        self._runtime.recorder.launch(function, (gx, gy, gz), self._block, values, 0)


class CubinDriver(SimDriver):
    """Triton's active driver in a recorder for an NVIDIA GPU.

    Args:
        runtime: Records launches.
        target: The target of the GPU.
    """

    def __init__(self, runtime: RecordingRuntime, target: GPUTarget) -> None:
        super().__init__(runtime)
        self._target = target
        self.utils.load_binary = _load  # type: ignore[assignment]

    def launcher_cls(self, src: KernelSource, metadata: LaunchMetadata) -> CubinLauncher:
        """Returns a launcher for one compiled kernel."""
        return CubinLauncher(self._recording, src, metadata)

    def get_current_target(self) -> GPUTarget:
        """The target of the GPU."""
        return self._target

    @property
    def _recording(self) -> RecordingRuntime:
        assert isinstance(self._runtime, RecordingRuntime)
        return self._runtime


def _load(name: str, binary: bytes, shared: int, device: int) -> tuple:
    kernel = RecordedKernel(PlanCode(CodeForm.CUBIN, bytes(binary)), name, shared)
    return kernel, kernel, 0, 0, _MAX_THREADS


def install(runtime: RecordingRuntime, reported: SimpleNamespace) -> None:
    """Makes the process record for an NVIDIA GPU.

    Args:
        runtime: Records launches.
        reported: What the GPU reports, as `kernel_gym.devices.gpu.vendors.reported` returns it.
    """
    cuda = vars(torch.cuda)
    torch.version.hip = None
    cuda["get_device_properties"] = lambda device=None: reported
    cuda["get_device_capability"] = lambda device=None: (reported.major, reported.minor)
    triton.runtime.driver.set_active(CubinDriver(runtime, GPUTarget(*reported.target)))
