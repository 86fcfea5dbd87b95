"""Inputs that the operator does not take at all, and the model's own code for them.

A part of the package. Layers ask before they call the operator: a refused call runs the code that
the layer replaced, and is counted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

REFUSED: Counter[str] = Counter()
"""Calls of layers that ran the model's own code, by reason. Compiled graphs are not counted."""
Stated = list[tuple[str, Any, torch.dtype]]
"""Tensor arguments: the name, the value, and the dtype that the task states."""


def wrong_type(stated: Stated) -> str:
    """Returns why the operator refuses arguments; empty if it takes them.

    Integers of other sizes are taken: plain PyTorch computes the same with them.
    """
    first = stated[0][1]
    for name, tensor, dtype in stated:
        if not isinstance(tensor, torch.Tensor):
            return f"{name} is {type(tensor).__name__}, expected a tensor"
        if (dtype.is_floating_point or tensor.is_floating_point()) and tensor.dtype != dtype:
            return f"{name} is {tensor.dtype}, expected {dtype}"
        if tensor.layout != torch.strided:
            return f"{name} is {tensor.layout}, expected {torch.strided}"
        if tensor.device != first.device:
            return f"{name} is on {tensor.device}, {stated[0][0]} is on {first.device}"
    return ""


def wrong_size(stated: Stated, axes: list[int | None]) -> str:
    """Returns which tensor is empty or has other axes than the task states; empty if none."""
    for (name, tensor, _), count in zip(stated, axes, strict=True):
        if tensor.numel() == 0:
            return f"{name} is empty"
        if count is not None and tensor.ndim != count:
            return f"{name} has {tensor.ndim} axes, expected {count}"
    return ""


def wrong_shape(stated: Stated, shapes: list[tuple[int, ...] | None]) -> str:
    """Returns which tensor has another shape than the other arguments give; empty if none."""
    for (name, tensor, _), shape in zip(stated, shapes, strict=True):
        if shape is not None and tuple(tensor.shape) != shape:
            return f"{name} has the shape {list(tensor.shape)}, expected {list(shape)}"
    return ""


def rows_of(x: torch.Tensor) -> torch.Tensor:
    """Returns a tensor as contiguous rows of its last axis, also an empty one or a number."""
    if x.is_contiguous() and x.ndim > 1 and x.numel():
        return x.view(-1, x.shape[-1])
    if x.ndim == 0:
        return x.reshape(1, 1)
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1]).contiguous()


def own_code(why: str, forward: Callable, *arguments: object, **keywords: object) -> object:
    """Runs the code that a layer replaced, and counts the call with its reason."""
    if not torch.compiler.is_compiling():
        REFUSED[why] += 1
    return forward(*arguments, **keywords)


def own_forward(why: str, module: nn.Module, *arguments: object, **keywords: object) -> object:
    """Runs the forward method of a module's class, which a layer replaced in the module alone.

    Raises:
        TypeError: The layer's method is that of the class, so that there is no other code.
    """
    forward = type(module).forward
    if getattr(forward, "__module__", "") == f"{__package__}.layers":
        raise TypeError(why)
    return own_code(why, forward, module, *arguments, **keywords)


def other_settings(module: nn.Module, expected: dict[str, list]) -> str:
    """Returns which setting of a module of two axes is none of those expected; empty if none is."""
    sizes = getattr(module, "kernel_size", None)
    if not isinstance(sizes, tuple) or len(sizes) != 2:
        return f"it filters {len(sizes or ())} axes, expected 2"
    for name, values in expected.items():
        value = getattr(module, name)
        if isinstance(value, torch.Tensor):
            return f"it has a {name}"
        if value not in values:
            return f"its {name} is {value}, expected {values[0]}"
    return ""


def kept_zeros(module: nn.Module, name: str, *shape: int) -> torch.Tensor:
    """Returns zeros in the form of a module's weight, which it keeps between calls by a name."""
    weight: Any = module.weight
    if torch.compiler.is_compiling():
        return weight.new_zeros(shape)
    kept = module.__dict__.setdefault("_kept_zeros", {})
    one = kept.get(name)
    if one is None or (one.shape, one.dtype, one.device) != (shape, weight.dtype, weight.device):
        with torch.inference_mode(False):
            one = kept[name] = torch.zeros(shape, dtype=weight.dtype, device=weight.device)
    return one
