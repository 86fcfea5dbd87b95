"""The answer of a kernel that does not exclude its padding.

Kernels work in tiles. Lanes beyond the end of an axis are masked and hold zeros. A wrong kernel
includes these zeros in a maximum, a mean or a sum of exponentials. Here the oracle computes the
answer for an axis that is extended by zeros, and the outputs are cut to their right size.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import torch

from kernel_gym.tasks.problem import Dims, Problem, TensorArg, Value
from kernel_gym.tasks.shapes import shape_of

TILE = 128
"""An axis is padded to a multiple of this size, as a kernel with such a block does."""
HARMLESS = 1e-9
"""Padding by zeros is right if outputs differ by less than this share of the largest output."""
MAX_FLOPS, MAX_BYTES = 300_000_000, 16_000_000
"""Most FLOPs and bytes of a padded workload: twice the limits of a simulator workload."""


def padded_answers(
    problem: Problem, dims: Dims, inputs: Mapping[str, Value]
) -> dict[str, tuple[torch.Tensor, ...]]:
    """Returns wrong answers by padded axis, in the dtypes of the outputs.

    Args:
        problem: The problem to compute.
        dims: The sizes of the call.
        inputs: The arguments. They are not changed.

    Returns:
        No answer for an axis that is a multiple of the tile, for which zeros are the right padding,
        or that is not a tensor dimension by itself.
    """
    exact = problem.oracle(**_copied(inputs))
    answers = {}
    for axis in problem.axes:
        padded = _padded(problem, dims, inputs, axis.name)
        if padded is None:
            continue
        try:
            longer = problem.oracle(**padded)
        except (RuntimeError, ValueError, IndexError, TypeError):
            continue  # the problem has no answer for this size
        cut = [_cut(out, right.shape) for out, right in zip(longer, exact, strict=True)]
        if any(out is None for out in cut) or all(map(_is_harmless, cut, exact)):
            continue
        answers[axis.name] = tuple(
            out.to(output.dtype).contiguous()
            for out, output in zip(cut, problem.outputs, strict=True)
            if out is not None
        )
    return answers


def _padded(
    problem: Problem, dims: Dims, inputs: Mapping[str, Value], axis: str
) -> dict[str, Value] | None:
    """Returns the arguments with one axis padded by zeros, or None if that is impossible."""
    size = -(-dims[axis] // TILE) * TILE
    tensors = [arg for arg in problem.args if isinstance(arg, TensorArg)]
    longer = {**dims, axis: size}
    texts = [*(arg.shape for arg in tensors), *(output.shape for output in problem.outputs)]
    if size == dims[axis] or not all(_is_plain(text, axis) for text in texts):
        return None
    if problem.flops(longer) > MAX_FLOPS or problem.bytes(longer) > MAX_BYTES:
        return None
    padded = _copied(inputs)
    for arg in tensors:
        value = inputs[arg.name]
        if not isinstance(value, torch.Tensor) or not re.search(rf"\b{axis}\b", arg.shape):
            continue
        try:
            before, after = shape_of(arg.shape, dims), shape_of(arg.shape, longer)
        except ValueError:  # a text in words: the shape depends on values
            return None
        if before != tuple(value.shape):
            return None
        filled = value.new_zeros(after)
        filled[tuple(slice(0, size) for size in before)] = value
        padded[arg.name] = filled
    return padded


def _is_plain(text: str, axis: str) -> bool:
    """Whether an axis is a size of a shape by itself, and not a part of another size."""
    return bool(text) and all(
        part.strip() == axis or not re.search(rf"\b{axis}\b", part) for part in text.split(",")
    )


def _cut(longer: torch.Tensor, shape: torch.Size) -> torch.Tensor | None:
    """Returns the leading part with a given shape, or None if the tensor is too small."""
    if longer.dim() != len(shape) or any(a < b for a, b in zip(longer.shape, shape, strict=True)):
        return None
    return longer[tuple(slice(0, size) for size in shape)]


def _is_harmless(padded: torch.Tensor | None, exact: torch.Tensor) -> bool:
    if padded is None or not exact.numel():
        return True
    if not exact.dtype.is_floating_point:
        return torch.equal(padded, exact)
    finite = exact[torch.isfinite(exact)].abs()
    largest = float(finite.max()) if finite.numel() else 0.0
    return torch.allclose(padded, exact, rtol=0.0, atol=HARMLESS * largest, equal_nan=True)


def _copied(inputs: Mapping[str, Value]) -> dict[str, Value]:
    return {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in inputs.items()}
