"""Triton's driver for the simulated device: it compiles for the true target and sends launches.

A backend derived from Triton's own keeps the assembler text as the binary, and a subclass of
`DriverBase` loads and launches it. Both are interfaces that all supported versions of Triton have.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import torch
import triton
from triton.backends import backends
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.compiler.compiler import ASTSource

from kernel_gym.worker.sim.runtime import SimRuntime

_FORMATS = {
    "fp32": "<f",
    "f32": "<f",
    "fp64": "<d",
    "f64": "<d",
    "fp16": "<e",
    "f16": "<e",
}


_ABSENT = object()
"""Stands for an argument that a launch does not give."""


class KernelSource(Protocol):
    """The part of a kernel's source, as Triton's compiler has it, that launchers use."""

    signature: Mapping[str, object]
    """The type of each argument by its name: a text, or nested tuples of such."""


class LaunchMetadata(Protocol):
    """The part of a compiled kernel's metadata that launchers use."""

    name: str
    num_warps: int
    warp_size: int


class TextBackend(backends["amd"].compiler):  # type: ignore[misc]
    """Triton's backend for AMD GPUs, whose `hsaco` stage keeps the assembler text."""

    def add_stages(self, stages: dict[str, object], *args: object) -> None:
        """Adds the stages from the source to the binary."""
        super().add_stages(stages, *args)
        stages["hsaco"] = lambda text, metadata: text.encode()

    def hash(self) -> str:
        """Returns the backend's part of cache keys: its binaries are of no use to others."""
        return f"kernel-gym-sim-{super().hash()}"


class SimUtils:
    """The `utils` of a Triton driver: device properties and code loading."""

    def __init__(self, runtime: SimRuntime) -> None:
        self._runtime = runtime

    def get_device_properties(self, device: int) -> dict[str, int | str]:
        """Properties of the simulated device, in the units of Triton's HIP driver."""
        properties = self._runtime.properties
        return {
            "max_shared_mem": properties.spec.lds_bytes,
            "multiprocessor_count": properties.spec.compute_units,
            "sm_clock_rate": properties.clock_khz,
            "mem_clock_rate": properties.memory_clock_khz,
            "mem_bus_width": properties.bus_bits,
            "warpSize": properties.spec.wavefront,
            "arch": properties.arch,
            "max_num_regs": 65536,
            "max_threads_per_sm": 2048,
            "cooperativeLaunch": 1,
        }

    def load_binary(self, name: str, binary: bytes | str, shared: int, device: int) -> tuple:
        """Loads assembler text: (module, function, registers, spills, most threads)."""
        code = binary.encode() if isinstance(binary, str) else bytes(binary)
        loaded = self._runtime.load(code, name, shared)
        most = loaded["max_workgroup"] or 1024
        return loaded, loaded, loaded["registers"], loaded["spills"], most

    def unload_module(self, module: object) -> None:
        """Loaded code stays until the process ends."""


class SimLauncher:
    """Packs the arguments of one compiled kernel and launches it."""

    def __init__(self, runtime: SimRuntime, src: KernelSource, metadata: LaunchMetadata) -> None:
        self._runtime = runtime
        self._types = [str(kind) for kind in flatten(src.signature.values())]
        self._block = (metadata.num_warps * metadata.warp_size, 1, 1)

    def __call__(self, gx, gy, gz, stream, function, kernel_meta, launch_meta, enter, leave, *args):
        """Called by Triton's JIT for each launch."""
        __tracebackhide__ = True
        if enter is not None:
            enter(launch_meta)
        sizes = [size for size, kind, _ in function["args"] if not kind.startswith("hidden_")]
        values = [
            pack(kind, value, size, place)
            for place, ((kind, value), size) in enumerate(
                zip(self._pairs(args), sizes, strict=False)
            )
        ]
        values += [bytes(size) for size in sizes[len(values) :]]  # scratch pointers: none
        self._runtime.launch(function["kernel"], (gx, gy, gz), self._block, values)
        if leave is not None:
            leave(launch_meta)

    def _pairs(self, args: tuple) -> Iterator[tuple[str, object]]:
        values = flatten(args)
        for place, kind in enumerate(self._types):
            value = next(values, _ABSENT)
            if kind == "constexpr":  # as on a GPU, trailing ones may be absent
                continue
            if value is _ABSENT:
                raise TypeError(
                    f"found {place} arguments, expected one at {place} ({kind}) as well: only "
                    "constexprs behind the last other argument may be left out"
                )
            if kind.startswith("tensordesc"):
                yield from _expand_descriptor(value)
            else:
                yield kind, value


class SimDriver(DriverBase):
    """Triton's active driver inside a worker of the simulated device."""

    def __init__(self, runtime: SimRuntime) -> None:
        self._runtime = runtime
        self.utils = SimUtils(runtime)

    def launcher_cls(self, src: KernelSource, metadata: LaunchMetadata) -> Callable[..., object]:
        """Returns a launcher for one compiled kernel."""
        return SimLauncher(self._runtime, src, metadata)

    @classmethod
    def is_active(cls) -> bool:
        """Returns True: `install` sets the driver explicitly."""
        return True

    def map_python_to_cpp_type(self, ty: str) -> str:
        """Returns its argument: nothing uses C++ types, since Python packs the arguments."""
        return ty

    def get_current_target(self) -> GPUTarget:
        """The target, such as HIP on gfx942 with wavefronts of 64 lanes."""
        properties = self._runtime.properties
        return GPUTarget("hip", properties.arch, properties.spec.wavefront)

    def get_current_device(self) -> int:
        """The number of the only device."""
        return 0

    def set_current_device(self, device: int) -> None:
        """Does nothing: there is only one device."""

    def get_current_stream(self, device: int = 0) -> int:
        """The number of the only stream: all work runs in order."""
        return 0

    def get_active_torch_device(self) -> torch.device:
        """The device `cuda:0`, as on a ROCm build of PyTorch."""
        return torch.device("cuda", 0)

    def get_device_interface(self) -> object:
        """Returns `torch.cuda`, which `cuda_facade` has adapted."""
        return torch.cuda

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        """Returns a small tensor: the model of time assumes cold caches, so nothing is flushed."""
        return torch.empty(1, dtype=torch.int, device="cuda")

    def clear_cache(self, cache: torch.Tensor) -> None:
        """Does nothing: there is nothing to flush."""

    def get_benchmarker(self) -> Callable:
        """Returns a benchmark by modelled time. One run suffices, since the model has no noise."""

        def benchmark(
            call: Callable, quantiles: Sequence[float] | None = None, **_: object
        ) -> float | list[float]:
            milliseconds = self._runtime.time_of(call) * 1e3
            return [milliseconds] * len(quantiles) if quantiles else milliseconds

        return benchmark


def install(runtime: SimRuntime) -> None:
    """Makes the simulated device Triton's active one in this process."""
    backends["amd"] = replace(backends["amd"], compiler=TextBackend)
    triton.runtime.driver.set_active(SimDriver(runtime))


def refuse(text: str) -> None:
    """Refuses to launch kernels by Triton in this process.

    Args:
        text: The message of the error that a launch raises.
    """

    def launch(*_: object, **__: object) -> None:
        raise RuntimeError(text)

    SimLauncher.__call__ = launch  # type: ignore[method-assign]


def distinguish_files() -> None:
    """Compiles equal kernels of different files apart, so that each names its own source lines.

    Triton's cache keeps the lines of the file that was compiled first.
    """
    hash_without_file = ASTSource.hash

    def hash_with_file(source: ASTSource) -> str:
        return f"{hash_without_file(source)}-{source.fn.fn.__code__.co_filename}"

    ASTSource.hash = hash_with_file


def pack(kind: str, value: Any, size: int, place: int = 0) -> bytes:
    """Returns the bytes of one kernel argument in its slot; `kind` is Triton's name of the type.

    Raises:
        ValueError: A pointer is to memory of the host, which a kernel cannot access.
    """
    if kind.startswith("*"):
        if isinstance(value, torch.Tensor) and value.is_cpu:
            kind = (
                "pinned memory: copy it to the simulated GPU"
                if value.is_pinned()
                else "cpu tensor?"
            )
            raise ValueError(
                f"Pointer argument (at {place}) cannot be accessed from Triton ({kind})"
            )
        address = 0 if value is None else getattr(value, "data_ptr", lambda: value)()
        return struct.pack("<Q", address)
    if kind == "bf16":
        return struct.pack("<f", value)[2:4]
    if kind in _FORMATS:
        return struct.pack(_FORMATS[kind], value)
    return (int(value) & ((1 << (8 * size)) - 1)).to_bytes(size, "little")


def _expand_descriptor(descriptor: Any) -> Iterator[tuple[str, object]]:
    """Expands a host-side tensor descriptor to the flat arguments that the compiler expects."""
    yield "*", descriptor.base
    wide = [*descriptor.shape, *descriptor.strides]
    for value in wide:
        yield "i64", value
    yield "i1", getattr(descriptor, "padding", "zero") == "nan"
    if hasattr(descriptor, "round_f32_to_tf32"):
        yield "i1", descriptor.round_f32_to_tf32
    for value in descriptor.shape:
        yield "i32", value
    for value in descriptor.strides:
        yield "i64", value


def flatten(values: Iterable[object]) -> Iterator[object]:
    """Yields the values in nested tuples and lists, as launchers expand arguments."""
    for value in values:
        if isinstance(value, tuple | list):
            yield from flatten(value)
        else:
            yield value
