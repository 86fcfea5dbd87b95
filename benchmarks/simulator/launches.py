"""How a Triton kernel of a measured record is launched, and its launch on the simulator."""

from __future__ import annotations

import importlib.util
import inspect
import mmap
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from kernel_gym.sim.engine.engine import Engine, LaunchResult, pack_kernarg

WAVE = 64
_PAGE = 4096
_TYPES = {
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
    torch.float32: "fp32",
    torch.float64: "fp64",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.bool: "i1",
}


@dataclass(frozen=True)
class Tensor:
    """A tensor argument without values: contiguous, of `shape`."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def kind(self) -> torch.dtype:
        """The element type."""
        kind = getattr(torch, self.dtype, None)
        if not isinstance(kind, torch.dtype):
            raise ValueError(f"{self.dtype!r} is no element type of torch")
        return kind

    @property
    def size(self) -> int:
        """Bytes."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.kind.itemsize


Argument = Tensor | int | float


@dataclass(frozen=True)
class TritonLaunch:
    """A launch of a Triton kernel.

    Attributes:
        function: Name of the kernel in its file.
        grid: Programs by dimension.
        arguments: Arguments that are no constants, in order.
        constants: Values of ``tl.constexpr`` arguments by name; a text such as ``tl.float32`` is a
            type of Triton's language.
        options: Of Triton's compiler, such as ``num_warps``.
    """

    function: str
    grid: tuple[int, ...]
    arguments: tuple[Argument, ...]
    constants: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> TritonLaunch:
        """A launch from the ``launch`` of a record."""
        arguments: list[Argument] = []
        for value in data["arguments"]:
            if isinstance(value, dict):
                arguments.append(Tensor(tuple(map(int, value["shape"])), str(value["dtype"])))
            elif isinstance(value, int | float):
                arguments.append(value)
            else:
                raise ValueError(f"an argument is a number or has shape and dtype, not {value!r}")
        grid = tuple(map(int, data["grid"]))
        constants, options = dict(data.get("constants", {})), dict(data.get("options", {}))
        return cls(str(data["function"]), grid, tuple(arguments), constants, options)

    def to_json(self) -> dict[str, Any]:
        """The inverse of :meth:`from_json`."""
        arguments = [
            {"shape": list(a.shape), "dtype": a.dtype} if isinstance(a, Tensor) else a
            for a in self.arguments
        ]
        return {
            "function": self.function,
            "grid": list(self.grid),
            "arguments": arguments,
            "constants": self.constants,
            "options": self.options,
        }


def name_target() -> None:
    """Gives Triton a target where there is no GPU, for files that ask which one there is."""
    from triton.backends.compiler import GPUTarget
    from triton.backends.driver import DriverBase
    from triton.runtime import driver

    class Target(DriverBase):
        """A driver that only knows its target."""

        @classmethod
        def is_active(cls) -> bool:
            return True

        def map_python_to_cpp_type(self, ty: str) -> str:
            return ty

        def get_current_target(self) -> GPUTarget:
            return GPUTarget("hip", "gfx942", WAVE)

        def get_active_torch_device(self) -> torch.device:
            return torch.device("cpu")

        def get_benchmarker(self) -> Any:
            raise NotImplementedError("this driver runs no kernels")

    if not torch.cuda.is_available():
        driver.set_active(Target())


@lru_cache(maxsize=64)
def load_kernels(path: Path) -> ModuleType:
    """The module in a file of kernels. It runs: only bring files that you trust."""
    import triton.language as tl

    if not path.is_file():
        raise FileNotFoundError(f"no file of kernels at {path}")
    name_target()
    name = f"kernel_gym_bench_{path.stem}_{abs(hash(path))}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    for constant, kind in getattr(module, "__annotations__", {}).items():
        if kind is tl.constexpr:  # an annotated global, which newer compilers refuse
            setattr(module, constant, tl.constexpr(getattr(module, constant)))
    return module


def kernel_function(path: Path, name: str) -> Any:
    """A kernel by name, without its tuner and heuristics."""
    function = getattr(load_kernels(path), name, None)
    if function is None:
        raise AttributeError(f"{path} has no kernel {name}")
    from triton.runtime.jit import JITFunction

    while not isinstance(function, JITFunction):
        function = function.fn
    return function


class SimulatedLaunches:
    """An engine that launches kernels on zeros and reports modelled times."""

    def __init__(self, arena_bytes: int = 6 << 30, threads: int | None = None) -> None:
        """Reserve memory; pages are used when a kernel writes to them."""
        self.engine = Engine(threads=threads)
        self._size = arena_bytes
        self._place()

    def _place(self) -> None:
        self._buffer = mmap.mmap(-1, self._size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._base = np.frombuffer(self._buffer, np.uint8).ctypes.data
        self.engine.set_memory(self._base, self._size)

    def run(self, path: Path, launch: TritonLaunch, **options: Any) -> LaunchResult:
        """Launches once.

        Raises:
            RuntimeError: If the kernel was stopped.
            MemoryError: If the arguments do not fit.
        """
        function = kernel_function(path, launch.function)
        text, shared, warps = compile_kernel(function, launch)
        kernel = self.engine.load(text, shared=shared)
        sizes = [arg.size for arg in kernel.args if not arg.hidden]
        packed, spans = self._pack(launch, sizes)
        self.engine.set_allocations(spans)
        block = (WAVE * warps,)
        kernarg = pack_kernarg(kernel, packed, launch.grid, block)
        options.setdefault("time_limit_s", 600.0)
        result = self.engine.launch(kernel, launch.grid, block, kernarg, **options)
        if result.fault:
            raise RuntimeError(f"{launch.function}: {result.fault.message}")
        self._buffer.madvise(mmap.MADV_DONTNEED)  # written pages go back, all zeros again
        return result

    def _pack(
        self, launch: TritonLaunch, sizes: list[int]
    ) -> tuple[list[bytes], list[tuple[int, int, str]]]:
        """The arguments that the compiled kernel takes, and their memory."""
        at, packed, spans = 0, [], []
        for value, size in zip(runtime_arguments(launch), sizes, strict=False):
            if isinstance(value, Tensor):
                packed.append((self._base + at).to_bytes(8, "little"))
                spans.append((self._base + at, value.size, f"argument {len(packed)}"))
                at += -(-value.size // _PAGE) * _PAGE + _PAGE
            elif isinstance(value, float):
                packed.append(struct.pack("<f" if size == 4 else "<d", value))
            else:
                packed.append(int(value).to_bytes(size, "little", signed=True))
        if at > self._size:
            raise MemoryError(f"arguments of {at} bytes do not fit in {self._size}")
        return packed, spans


def runtime_arguments(launch: TritonLaunch) -> list[Argument]:
    """The arguments that the compiler does not fold: an integer 1 is a constant for Triton."""
    return [a for a in launch.arguments if not (isinstance(a, int) and a == 1)]


def _signature(
    names: list[str], launch: TritonLaunch
) -> Iterator[tuple[int, str, str, list[list[Any]] | None]]:
    """For each argument: its number, name, Triton type and attributes."""
    values = iter(launch.arguments)
    for number, name in enumerate(names):
        if name in launch.constants:
            yield number, name, "constexpr", None
            continue
        value = next(values)
        aligned = [["tt.divisibility", 16]]
        if isinstance(value, Tensor):
            yield number, name, f"*{_TYPES[value.kind]}", aligned
        elif isinstance(value, float):
            yield number, name, "fp32", None
        else:
            small = -(1 << 31) <= value < 1 << 31
            kind = "constexpr" if value == 1 else "i32" if small else "i64"
            yield number, name, kind, aligned if value % 16 == 0 else None


def compile_kernel(function: Any, launch: TritonLaunch) -> tuple[str, int, int]:
    """Assembler text, LDS bytes and waves of a kernel that Triton compiles for gfx942."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    names = list(function.arg_names)
    constants = constants_of(launch)
    signature, attributes = {}, {}
    values = dict(
        zip([n for n in names if n not in launch.constants], launch.arguments, strict=True)
    )
    for number, name, kind, attribute in _signature(names, launch):
        signature[name] = kind
        if kind == "constexpr" and name in values:
            constants[name] = values[name]
        if attribute and kind != "constexpr":
            attributes[(number,)] = attribute
    source = ASTSource(function, signature, constants, attrs=attributes)
    options = {"num_warps": 4, **launch.options}
    binary = triton.compile(source, target=GPUTarget("hip", "gfx942", WAVE), options=options)
    return binary.asm["amdgcn"], binary.metadata.shared, int(binary.metadata.num_warps)


def constants_of(launch: TritonLaunch) -> dict[str, Any]:
    """The constants with the types of Triton's language that some of them name."""
    import triton.language as tl

    return {
        name: getattr(tl, value[3:])
        if isinstance(value, str) and value.startswith("tl.")
        else value
        for name, value in launch.constants.items()
    }


def positional(function: Any, launch: TritonLaunch) -> list[Any]:
    """All arguments of a kernel in the order of its signature."""
    values, constants = iter(launch.arguments), constants_of(launch)
    parameters = inspect.signature(function.fn).parameters
    return [constants[n] if n in constants else next(values) for n in parameters]
