"""Fresh values for the tensors of a recorded call: of the same class, so that they stay legal."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence

import torch

from kernel_gym.imports.recorded.calls import TensorForm, ValueClass
from kernel_gym.imports.recorded.templates import Dims, is_contiguous, size_of
from kernel_gym.tasks.expanded import assign

MAX_DRAWS = 4
"""How often rows of distinct integers are drawn again before they are cut from permutations."""


class ImpossibleError(ValueError):
    """There are no values of the class for such sizes."""


def draw_tensor(
    form: TensorForm, shape: Sequence[int], dims: Dims, generator: torch.Generator
) -> torch.Tensor:
    """Draws a tensor in the memory layout of the recorded one.

    Args:
        form: The recorded tensor.
        shape: The shape to draw.
        dims: The sizes of the axes, which may bound integers.
        generator: Decides the values.

    Raises:
        ImpossibleError: The class or the layout does not allow the shape.
    """
    values = _values(form, tuple(shape), dims, generator)
    if form.padding:
        return _padded(values, form.padding)
    strides = layout(form, shape)
    if is_contiguous(shape, strides):
        return values.contiguous()
    steps = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True) if size)
    storage = torch.zeros(steps + 1, dtype=form.type)
    return assign(storage.as_strided(tuple(shape), tuple(strides)), values)


def _padded(values: torch.Tensor, padding: int) -> torch.Tensor:
    """Returns a view of equal values with unused elements after each row and before the first."""
    *lead, last = values.shape
    rows = math.prod(lead)
    storage = torch.zeros(1 + rows * (last + padding), dtype=values.dtype)
    view = storage[1:].view(*lead, last + padding)[..., :last]
    view.copy_(values)
    return view


def layout(form: TensorForm, shape: Sequence[int]) -> tuple[int, ...]:
    """Returns strides for a shape as those of the recorded tensor.

    Raises:
        ImpossibleError: The recorded tensor has gaps, so that no other shape has such strides.
    """
    if tuple(shape) == form.shape:
        return form.strides
    order = sorted(range(len(shape)), key=lambda i: (form.strides[i], -i))
    strides, expected = [0] * len(shape), 1
    for axis in order:
        if form.strides[axis] == 0 and form.shape[axis] > 1:
            continue
        strides[axis] = expected
        expected *= shape[axis]
    if is_contiguous(form.shape, form.strides):
        return tuple(_dense(shape))
    if not _gapless(form, order):
        raise ImpossibleError("a view with gaps has no other shape")
    return tuple(strides)


def _gapless(form: TensorForm, order: Sequence[int]) -> bool:
    expected = 1
    for axis in order:
        if form.shape[axis] == 1 or form.strides[axis] == 0:
            continue
        if form.strides[axis] != expected:
            return False
        expected *= form.shape[axis]
    return True


def _dense(shape: Sequence[int]) -> list[int]:
    return [math.prod(shape[i + 1 :]) for i in range(len(shape))]


def _values(
    form: TensorForm, shape: tuple[int, ...], dims: Dims, generator: torch.Generator
) -> torch.Tensor:
    dtype, values = form.type, form.values
    if values.kind == "empty":
        return _never_written(shape, dtype)
    if values.kind == "constant":
        value = size_of(values.bound, dims) if values.bound else values.value
        return torch.full(shape, float(value) if dtype.is_floating_point else int(value)).to(dtype)
    if values.kind == "float":
        return _floats(values, shape, generator).to(dtype)
    if values.kind == "bool":
        drawn = torch.rand(shape, generator=generator) < values.share
        return _patterned(drawn, values.pattern).to(dtype)
    return _integers(form, shape, dims, generator)


def _never_written(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """A tensor as fresh device memory is: every byte is 0xFF."""
    size = math.prod(shape) * dtype.itemsize
    filled = torch.full((size,), 0 if dtype is torch.bool else 0xFF, dtype=torch.uint8)
    return filled.view(dtype).reshape(shape)


def _floats(values: ValueClass, shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    low, high = float(values.low), float(values.high)
    if values.whole and high - low < 1 << 24:
        drawn = torch.randint(int(low), int(high) + 1, shape, generator=generator).double()
    elif low >= 0 or high <= 0:
        drawn = low + (high - low) * torch.rand(shape, generator=generator, dtype=torch.float64)
    else:
        drawn = torch.randn(shape, generator=generator, dtype=torch.float64)
        drawn = (values.mean + values.deviation * drawn).clamp(low, high)
    if values.pattern in ("positive", "symmetric") and shape[-1] == shape[-2]:
        across = drawn.transpose(-1, -2)
        if values.pattern == "symmetric":
            return (drawn + across) / 2
        return drawn @ across / shape[-1] + values.deviation * torch.eye(shape[-1])
    if values.pattern:
        return _patterned(drawn, values.pattern)
    if values.zeros > 0.05 and not values.whole:
        drawn = torch.where(torch.rand(shape, generator=generator) < values.zeros, 0.0, drawn)
    if values.minus_infinite:
        hidden = torch.rand(shape, generator=generator) < values.minus_infinite
        hidden[..., :1] = False
        drawn = torch.where(hidden, -math.inf, drawn)
    if values.nans:
        lost = torch.rand(shape, generator=generator) < values.nans
        drawn = torch.where(lost, math.nan, drawn)
    return drawn


def _patterned(drawn: torch.Tensor, pattern: str) -> torch.Tensor:
    if pattern == "lower":
        return torch.tril(drawn)
    if pattern == "upper":
        return torch.triu(drawn)
    if pattern == "diagonal":
        return torch.diag_embed(torch.diagonal(drawn, dim1=-2, dim2=-1))
    return drawn


def _integers(
    form: TensorForm, shape: tuple[int, ...], dims: Dims, generator: torch.Generator
) -> torch.Tensor:
    values, size = form.values, math.prod(shape)
    low, high = int(values.low), int(values.high)
    if values.bound:
        high = size_of(values.bound, dims) - 1
    if values.kind == "kept":
        if shape != form.shape:
            raise ImpossibleError("integers that belong together have no other shape")
        data = bytearray(base64.b64decode(values.data))
        return torch.frombuffer(data, dtype=form.type).clone().reshape(shape)
    if values.kind == "range":
        row = values.start + torch.arange(shape[-1])
        return row.expand(shape).to(form.type)
    if values.kind == "permutation":
        if size != high - low + 1 and not values.bound:
            high = low + size - 1
        return (low + torch.randperm(size, generator=generator)).reshape(shape).to(form.type)
    drawn = torch.randint(low, max(low, high) + 1, shape, generator=generator)
    if values.distinct and size:
        drawn = _distinct(drawn.reshape(-1, shape[-1]), low, high, generator).reshape(shape)
    return drawn.to(form.type)


def _distinct(rows: torch.Tensor, low: int, high: int, generator: torch.Generator) -> torch.Tensor:
    """Draws rows again that have an integer twice."""
    length = rows.shape[1]
    if length > high - low + 1:
        raise ImpossibleError("there are too few integers for a row without repetitions")
    for number in range(MAX_DRAWS + 1):
        ordered = rows.sort(dim=1).values
        wrong = (ordered[:, 1:] == ordered[:, :-1]).any(dim=1).nonzero().flatten()
        if not len(wrong):
            break
        if number < MAX_DRAWS:
            rows[wrong] = torch.randint(low, high + 1, (len(wrong), length), generator=generator)
            continue
        for row in wrong:
            rows[row] = low + torch.randperm(high - low + 1, generator=generator)[:length]
    return rows


def perturbed(form: TensorForm, tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Moves each value of a real-valued tensor by one rounding, up or down at random.

    The change of a result under it is the noise of the calculation that made the result.
    """
    if form.values.kind != "float" or form.values.whole or not tensor.numel():
        return tensor
    signs = torch.randint(0, 2, tensor.shape, generator=generator, device=tensor.device)
    signs = signs.double() * 2 - 1
    limits, exact = torch.finfo(tensor.dtype), tensor.double()
    moved = (exact * (1 + signs * limits.eps)).clamp(limits.min, limits.max)
    moved = torch.where(torch.isfinite(exact), moved, exact)
    result = torch.empty_strided(
        tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device
    )
    return assign(result, moved.to(tensor.dtype))
