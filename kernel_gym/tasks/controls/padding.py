"""Answers as a kernel would give them that lets its padding take part.

Kernels work in tiles. Lanes beyond the end of an axis are masked, and hold zeros. A kernel that
forgets that they are there counts them in a maximum, a mean or a sum of exponentials. Here the
oracle computes the answer for an axis that zeros make longer, and what lies beyond its end is cut
off.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import torch

from kernel_gym.tasks.problem import Dims, Problem, TensorArg, Value
from kernel_gym.tasks.shapes import shape_of

TILE = 128
"""An axis is filled up to a multiple of it, as a kernel with such a block would do."""
HARMLESS = 1e-9
"""Of the largest output: below this difference, zeros are the right padding of an axis."""
MOST_FLOPS, MOST_BYTES = 300_000_000, 16_000_000
"""Longer axes are not tried: twice what a workload of the simulator may cost."""


def padded_answers(
    problem: Problem, dims: Dims, inputs: Mapping[str, Value]
) -> dict[str, tuple[torch.Tensor, ...]]:
    """Wrong answers by the axis whose padding takes part, in the dtypes of the outputs.

    Args:
        problem: what is computed.
        dims: the sizes of the call.
        inputs: its arguments; they stay as they are.

    Returns:
        Nothing of an axis that zeros may fill without harm, that a tile divides, or whose tensors
        do not have it as an axis of their own.
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
    """The arguments with one axis filled up by zeros; None where that cannot be done."""
    size = -(-dims[axis] // TILE) * TILE
    tensors = [arg for arg in problem.args if isinstance(arg, TensorArg)]
    longer = {**dims, axis: size}
    texts = [*(arg.shape for arg in tensors), *(output.shape for output in problem.outputs)]
    if size == dims[axis] or not all(_is_plain(text, axis) for text in texts):
        return None
    if problem.flops(longer) > MOST_FLOPS or problem.bytes(longer) > MOST_BYTES:
        return None
    padded = _copied(inputs)
    for arg in tensors:
        value = inputs[arg.name]
        if not isinstance(value, torch.Tensor) or not re.search(rf"\b{axis}\b", arg.shape):
            continue
        try:
            before, after = shape_of(arg.shape, dims), shape_of(arg.shape, longer)
        except ValueError:  # words: the shape depends on values
            return None
        if before != tuple(value.shape):
            return None
        filled = value.new_zeros(after)
        filled[tuple(slice(0, size) for size in before)] = value
        padded[arg.name] = filled
    return padded


def _is_plain(text: str, axis: str) -> bool:
    """Whether an axis is one size of a shape by itself, and no part of another size."""
    return bool(text) and all(
        part.strip() == axis or not re.search(rf"\b{axis}\b", part) for part in text.split(",")
    )


def _cut(longer: torch.Tensor, shape: torch.Size) -> torch.Tensor | None:
    """The leading part of a shape; None where it is none."""
    if longer.dim() != len(shape) or any(a < b for a, b in zip(longer.shape, shape, strict=True)):
        return None
    return longer[tuple(slice(0, size) for size in shape)]


def _is_harmless(found: torch.Tensor | None, exact: torch.Tensor) -> bool:
    if found is None or not exact.numel():
        return True
    if not exact.dtype.is_floating_point:
        return torch.equal(found, exact)
    finite = exact[torch.isfinite(exact)].abs()
    largest = float(finite.max()) if finite.numel() else 0.0
    return torch.allclose(found, exact, rtol=0.0, atol=HARMLESS * largest, equal_nan=True)


def _copied(inputs: Mapping[str, Value]) -> dict[str, Value]:
    return {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in inputs.items()}
