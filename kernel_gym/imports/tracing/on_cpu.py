"""Runs code on the CPU that names a GPU, and knows which tensors it only reserved.

Public problems write `device="cuda"` and pass generators of that device. Values do not matter to a
trace, and each draw gets its own generator later. So devices become the CPU and generators are left
out. A buffer for the result is no input: its first values are the same in each call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map, tree_map_only

_FILLS: dict[object, float | None] = {
    torch.empty: None,
    torch.empty_like: None,
    torch.Tensor.new_empty: None,
    torch.zeros: 0.0,
    torch.zeros_like: 0.0,
    torch.Tensor.new_zeros: 0.0,
}
"""Functions that make a tensor of one value, and the value; None if it is left open."""
_FILL = "_kernel_gym_fill"
_PlainGenerator = torch.Generator
_plain_to = torch.nn.Module.to


@dataclass(frozen=True)
class Reserved:
    """A tensor that was made but never written: a buffer for a result."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    fill: float | None

    def made(self, like: torch.Tensor) -> torch.Tensor:
        """Returns a new tensor of this kind, where another one is."""
        if self.fill is None:
            return like.new_empty(self.shape, dtype=self.dtype)
        return like.new_full(self.shape, self.fill, dtype=self.dtype)


def reserved(data: object) -> object:
    """Returns nested data with `Reserved` in place of tensors that were never written."""
    return tree_map_only(torch.Tensor, _reserved, data)


def restored(data: object) -> object:
    """Returns nested data with new tensors in place of `Reserved`."""
    like = next(leaf for leaf in tree_leaves(data) if isinstance(leaf, torch.Tensor))
    return tree_map(lambda one: one.made(like) if isinstance(one, Reserved) else one, data)


def _reserved(tensor: torch.Tensor) -> torch.Tensor | Reserved:
    if not hasattr(tensor, _FILL) or tensor._version:
        return tensor
    return Reserved(tuple(tensor.shape), tensor.dtype, getattr(tensor, _FILL))


class OnCpu(TorchFunctionMode):
    """Makes code that names a GPU run on the CPU.

    Args:
        draws: Whether the code makes inputs. Then a drawn number may be read, as in
            `torch.rand(1).item()`, and stays a tensor of no dimension.
    """

    def __init__(self, draws: bool = False) -> None:
        super().__init__()
        self._draws = draws

    def __enter__(self) -> OnCpu:
        """Replaces generators of a GPU, and moves of modules, as well."""
        torch.Generator = _CpuGenerator  # type: ignore[misc]
        torch.nn.Module.to = _module_to  # type: ignore[assignment]
        return super().__enter__()

    def __exit__(self, *details: object) -> None:
        """Undoes the replacements."""
        torch.Generator = _PlainGenerator  # type: ignore[misc]
        torch.nn.Module.to = _plain_to  # type: ignore[method-assign]
        super().__exit__(*details)

    def __torch_function__(
        self, func: Callable[..., object], types: object, args: Any = (), kwargs: Any = None
    ) -> object:
        """Calls a function of PyTorch with the CPU in place of a GPU."""
        kwargs = dict(kwargs or {})
        if isinstance(kwargs.get("generator"), _PlainGenerator):
            del kwargs["generator"]
        args, kwargs = tuple(map(_on_cpu, args)), {k: _on_cpu(v) for k, v in kwargs.items()}
        if func is torch.Tensor.cuda:
            return args[0]
        if func is torch.Tensor.item and self._draws:
            return args[0].reshape(())
        if func is torch.bincount and kwargs.get("minlength"):
            return _counts(args[0], kwargs["minlength"])
        result = func(*args, **kwargs)
        if func in _FILLS and isinstance(result, torch.Tensor):
            if self._draws and _FILLS[func] is None:
                result = _without_values(result)
            setattr(result, _FILL, _FILLS[func])
        return result


def _without_values(reserved: torch.Tensor) -> torch.Tensor:
    """Returns NaN in place of what reserved memory holds, which differs from run to run."""
    fake = isinstance(reserved, torch._subclasses.FakeTensor)
    if fake or not reserved.is_floating_point():
        return reserved
    return torch.full_like(reserved, float("nan"))


class _CpuGenerator(_PlainGenerator):
    def __new__(cls, device: object = None) -> _CpuGenerator:
        return super().__new__(cls, "cpu")  # type: ignore[call-arg]


def _module_to(module: torch.nn.Module, *args: object, **kwargs: object) -> torch.nn.Module:
    """Moves a module to another dtype; it is on the CPU already."""
    if not kwargs and all(isinstance(arg, str | torch.device) for arg in args):
        return module
    kwargs = {k: _on_cpu(v) for k, v in kwargs.items()}
    moved: torch.nn.Module = _plain_to(module, *map(_on_cpu, args), **kwargs)  # type: ignore[call-overload]
    return moved


def _on_cpu(value: object) -> object:
    if isinstance(value, torch.device):
        return torch.device("cpu") if value.type == "cuda" else value
    if isinstance(value, str) and value.partition(":")[0] == "cuda":
        return "cpu"
    return value


def _counts(values: torch.Tensor, length: int) -> torch.Tensor:
    """Counts values below a length. `bincount` is not traced, since a larger value adds bins."""
    ones = torch.ones_like(values, dtype=torch.int64)
    zeros = torch.zeros(length, dtype=torch.int64)
    return zeros.scatter_add(0, values.reshape(-1).long(), ones.reshape(-1))
