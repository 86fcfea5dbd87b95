"""A launch of a Triton kernel as data, and its execution on the GPU that PyTorch has."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import torch


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
        """A launch from the ``launch`` of a point."""
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


@lru_cache(maxsize=64)
def load_kernels(path: Path) -> ModuleType:
    """The module in a file of kernels. It runs: only bring files that you trust."""
    import triton.language as tl

    if not path.is_file():
        raise FileNotFoundError(f"no file of kernels at {path}")
    name = f"kernel_gym_clock_{path.stem}_{abs(hash(path))}"
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


def launcher(path: Path, launch: TritonLaunch) -> Any:
    """A function that makes the launch on PyTorch's GPU, with random and zero inputs."""
    function = kernel_function(path, launch.function)
    arguments = [_on_device(value) for value in positional(function, launch)]
    return lambda: function[launch.grid](*arguments, **launch.options)


def positional(function: Any, launch: TritonLaunch) -> list[Any]:
    """All arguments of a kernel in the order of its signature."""
    import triton.language as tl

    constants = {
        name: getattr(tl, value[3:])
        if isinstance(value, str) and value.startswith("tl.")
        else value
        for name, value in launch.constants.items()
    }
    values = iter(launch.arguments)
    parameters = inspect.signature(function.fn).parameters
    return [constants[n] if n in constants else next(values) for n in parameters]


def _on_device(value: Argument | Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    if value.kind.is_floating_point:
        return torch.randn(value.shape, device="cuda").to(value.kind)
    return torch.zeros(value.shape, dtype=value.kind, device="cuda")
