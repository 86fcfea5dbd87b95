"""Chooses between the kernel and plain PyTorch, by what was measured. A part of the package.

The kernel runs where its task says what is right (types, shapes, sizes), on the architecture on
which it was judged, and for sizes near a workload on which it was surely faster: the nearest
measured workload, by the sum of |log2| of the ratios of all sizes, has a speed-up above 1 at the
lower end of its interval. Everything else takes plain PyTorch. Without measured workloads, plain
PyTorch is no fair baseline of the task, and sizes do not decide.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable
from pathlib import Path

import torch

FACTS = json.loads(Path(__file__).with_name("facts.json").read_text(encoding="utf-8"))


Shape = tuple[int, ...]


def reason(
    tensors: list[torch.Tensor],
    read_sizes: Callable[[], tuple[dict[str, int], list[Shape | None]]],
    copied: bool = False,
) -> str:
    """Returns why the kernel does not take a call, or an empty text if it does.

    Args:
        tensors: The tensor arguments.
        read_sizes: Returns the size of each axis, and the shape that they give each tensor. It is
            called if the tensors have as many axes as the task states.
        copied: Ask for contiguous copies of the tensors.
    """
    if wrong := _wrong_tensor(tensors, copied):
        return wrong
    dims, shapes = read_sizes()
    if wrong := _wrong_shape(tensors, shapes) or _outside(dims):
        return wrong
    if (architecture := _architecture(tensors[0].device.index or 0)) != FACTS["architecture"]:
        return f"the device is {architecture}, the kernel was judged on {FACTS['architecture']}"
    return _slower(dims)


def unsuited(tensor: torch.Tensor, dims: dict[str, int]) -> str:
    """Returns why a GPU does not run the kernel for the sizes of the axes; empty if it may."""
    return (_outside(dims) or _slower(dims)) if tensor.device.type == "cuda" else ""


def _slower(dims: dict[str, int]) -> str:
    if FACTS["workloads"] and _nearest_low(tuple(sorted(dims.items()))) <= 1.0:
        return "the nearest measured workload was not surely faster"
    return ""


def _wrong_tensor(tensors: list[torch.Tensor], copied: bool) -> str:
    for tensor, (name, dtype, axes) in zip(tensors, FACTS["tensors"], strict=True):
        if str(tensor.dtype) != dtype:
            return f"{name} is {tensor.dtype}, the kernel takes {dtype}"
        if axes is not None and tensor.ndim != axes:
            return f"{name} has {tensor.ndim} axes, the kernel takes {axes}"
        if tensor.device.type != "cuda":
            return f"{name} is on {tensor.device.type}"
        if tensor.numel() == 0:
            return f"{name} is empty"
        if not (FACTS["strided"] or copied or tensor.is_contiguous()):
            return f"{name} is not contiguous"
    return ""


def _wrong_shape(tensors: list[torch.Tensor], shapes: list[Shape | None]) -> str:
    for tensor, shape, (name, *_) in zip(tensors, shapes, FACTS["tensors"], strict=True):
        if shape is not None and tuple(tensor.shape) != shape:
            return f"{name} has the shape {list(tensor.shape)}, the kernel takes {list(shape)}"
    return ""


def _outside(dims: dict[str, int]) -> str:
    for name, low, high, multiple in FACTS["axes"]:
        if name in dims and not (low <= dims[name] <= high and dims[name] % multiple == 0):
            return f"{name} = {dims[name]} is outside of what the task takes"
    return ""


@functools.cache
def _architecture(index: int) -> str:
    properties = torch.cuda.get_device_properties(index)
    name = getattr(properties, "gcnArchName", "").split(":")[0]  # on NVIDIA the product's name
    return name if name.startswith("gfx") else f"sm_{properties.major}{properties.minor}"


@functools.lru_cache(maxsize=4096)
def _nearest_low(dims: tuple[tuple[str, int], ...]) -> float:
    def distance(measured: dict[str, int]) -> float:
        return sum(
            abs(math.log2((size + 1) / (measured[name] + 1)))
            for name, size in dims
            if name in measured
        )

    return float(min(FACTS["workloads"], key=lambda row: distance(row["dims"]))["low"])
