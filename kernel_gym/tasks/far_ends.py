"""The ends of a problem's axes: the largest sizes that an evaluation can afford, and the least.

A kernel that supports a part of the legal domain only, such as 8192 columns of 65536, is wrong at a
far end. Every evaluation checks the far end of each axis.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache

from kernel_gym.tasks.problem import Axis, Dims, Problem, Scale
from kernel_gym.tasks.shapes import shape_of

BUDGET_FACTOR: Mapping[Scale, float] = {Scale.FULL: 2.0, Scale.SIM: 1.5}
"""Most elements of a drawn workload, as a multiple of the largest train workload's elements."""
BYTES_FACTOR = 2
"""Most bytes of a far end, as a multiple of the largest train workload's bytes."""
ROWS_FACTOR: Mapping[Scale, int] = {Scale.FULL: 16, Scale.SIM: 3}
"""Most rows of a tensor at a far end, as a multiple of the largest train workload's rows. Many
kernels have a work-group for each row, and the simulator pays for each."""
SET_BYTES: Mapping[Scale, int] = {Scale.FULL: (2 << 30) - (64 << 20)}
"""Most bytes of the inputs and outputs of one call. Timing on a GPU needs two sets of them in the
judge's shared memory of 4 GiB. The simulator's sizes are far below that."""
STRETCH = 3
"""Multiple of all budgets for an axis that otherwise ends below `BEYOND` times its train sizes."""
TOP = 0.9
"""Drawn sizes near a far end lie in the last tenth of the axis on a log scale."""
NEAR_STEPS = 4
"""Steps above its least size that an axis keeps where another axis has its least size."""
FEW_STEPS = 3
"""Steps above its least size that each axis keeps where only values matter."""
UNSHOWN_GROWTH = 3
"""Most elements of such sizes when they avoid those of prompts, as a multiple of what they had."""
HALVINGS = 40
"""Most times that an axis is halved."""
MAX_EDGE_STEPS = 256
"""Most sizes from the lowest one of an axis on that are tried for an edge."""
BEYOND = 2
"""A far end lies above this multiple of the largest train size, where that is legal."""


def budget(problem: Problem, scale: Scale) -> int:
    """Returns the most `problem.elements` that a drawn workload of a scale may have."""
    return int(BUDGET_FACTOR[scale] * max(problem.elements(dims) for dims in problem.train[scale]))


def set_bytes(problem: Problem, dims: Dims) -> int:
    """Returns the bytes of the tensors of one call, as far as their shapes are known."""
    held = 0
    for tensor in problem.tensors:
        with suppress(ValueError):  # a shape in words, which depends on values
            held += math.prod(shape_of(tensor.shape, dims)) * tensor.dtype.itemsize
    return held


def fits_memory(problem: Problem, scale: Scale, dims: Dims) -> bool:
    """Whether the tensors of a call have at most `SET_BYTES`, or those of a train workload."""
    if scale not in SET_BYTES:
        return True
    held = set_bytes(problem, dims)
    return held <= SET_BYTES[scale] or held <= max(
        set_bytes(problem, train) for train in problem.train[scale]
    )


def far_ends(problem: Problem, scale: Scale) -> list[Dims]:
    """Returns a point for each axis that ends beyond its train sizes.

    The axis has its largest legal size within the budgets of elements, bytes and rows. The other
    axes are as small as that needs.
    """
    ends = (far_end(problem, scale, axis) for axis in problem.axes)
    return [dims for dims in ends if dims is not None]


@cache
def far_end(problem: Problem, scale: Scale, axis: Axis) -> Dims | None:
    """Returns the point with the largest legal size of one axis, or None if a train size has it."""
    largest = max(dims[axis.name] for dims in problem.train[scale])
    enough = min(axis.high, BEYOND * largest + axis.multiple)
    best = _farthest(problem, scale, axis, axis.high, 1)
    if best is None or best[axis.name] < enough:
        best = _farthest(problem, scale, axis, enough, STRETCH)
    return best if best is not None and best[axis.name] > largest else None


def _farthest(problem: Problem, scale: Scale, axis: Axis, high: int, stretch: int) -> Dims | None:
    """Returns the point with the largest size of an axis, up to `high`, or None."""
    affordable = _affordable(problem, scale, stretch)
    best: Dims | None = None
    for base in _bases(problem, scale, axis):
        low = base[axis.name] if best is None else max(base[axis.name], best[axis.name] + 1)
        steps = -(-low // axis.multiple), high // axis.multiple
        size = _largest(axis, {**base}, steps, affordable)
        if size is not None:
            best = {**base, axis.name: size}
    return best


def _affordable(problem: Problem, scale: Scale, stretch: int) -> Callable[[Dims], bool]:
    """Returns the test whether a point is legal and within the budgets times `stretch`."""
    train = problem.train[scale]
    elements = stretch * budget(problem, scale)
    moved = stretch * BYTES_FACTOR * max(map(problem.bytes, train))
    rows = stretch * ROWS_FACTOR[scale] * max(_rows(problem, dims) for dims in train)

    def affordable(dims: Dims) -> bool:
        return (
            problem.legal(dims)
            and problem.elements(dims) <= elements
            and problem.bytes(dims) <= moved
            and _rows(problem, dims) <= rows
            and fits_memory(problem, scale, dims)
        )

    return affordable


def _largest(
    axis: Axis, base: dict[str, int], steps: tuple[int, int], affordable: Callable[[Dims], bool]
) -> int | None:
    """Returns the largest affordable size of an axis, or None if the least is not affordable."""
    low, high = steps
    if low > high or not affordable({**base, axis.name: low * axis.multiple}):
        return None
    while low < high:
        middle = math.ceil((low + high) / 2)
        fits = affordable({**base, axis.name: middle * axis.multiple})
        low, high = (middle, high) if fits else (low, middle - 1)
    return low * axis.multiple


def _rows(problem: Problem, dims: Dims) -> int:
    """Returns the most rows of any tensor with more than one axis, as far as its shape is known."""
    shapes = [*problem.output_shapes(dims).values()]
    for tensor in problem.tensors:
        with suppress(ValueError):  # a shape in words, which depends on values
            shapes.append(shape_of(tensor.shape, dims))
    return max((math.prod(shape[:-1]) for shape in shapes if len(shape) > 1), default=1)


def near_far_end(problem: Problem, scale: Scale, rng: random.Random) -> Dims | None:
    """Draws a point whose size on some axis is in the last tenth, on a log scale, of the axis.

    Returns:
        A legal point within the budgets, or None if the draw is not legal or there is no far end.
    """
    ends = [(a, end) for a in problem.axes if (end := far_end(problem, scale, a)) is not None]
    if not ends:
        return None
    axis, end = rng.choice(ends)
    low, high = max(1, axis.low), end[axis.name]
    size = low * (high / low) ** rng.uniform(TOP, 1.0)
    dims = {**end, axis.name: _whole(size, axis)}
    return dims if problem.legal(dims) else None


def _whole(size: float, axis: Axis) -> int:
    return max(axis.low, round(size / axis.multiple) * axis.multiple)


def _bases(problem: Problem, scale: Scale, axis: Axis) -> Iterator[Dims]:
    """Yields legal points whose other axes get smaller: train points, halved, and tiny ones."""
    for dims in problem.train[scale]:
        current: Dims = dims
        for _ in range(HALVINGS):
            yield current
            names = {a.name: a for a in problem.axes if a.name != axis.name}
            shrinkable = [a for a in names.values() if current[a.name] > a.low]
            smaller = (
                {**current, a.name: _whole(current[a.name] / 2 - 0.01, a)}
                for a in sorted(shrinkable, key=lambda a: -current[a.name] / max(1, a.low))
            )
            step = next((d for d in smaller if problem.legal(d) and d != current), None)
            if step is None:
                break
            current = step
    yield from problem.adversarial


@cache
def near_ends(problem: Problem, scale: Scale) -> tuple[Dims, ...]:
    """Returns small sizes with the least legal size of each axis that no other workload has.

    An edge (`Kind.EDGE`) has the least size of one drawn axis, so it does not count: a kernel that
    is wrong for one row would pass where the edge is on another axis. The other axes have about
    `NEAR_STEPS` steps, since an answer may be the same whatever a kernel does if all sizes are
    least.
    """
    checked = (*problem.adversarial, *problem.train[scale])
    lowest = {axis.name: axis.low for axis in problem.axes}
    ends: list[Dims] = []
    for axis in problem.axes:
        small = [_halved(problem, dims, axis) for dims in problem.train[scale]]
        bases = [*sorted(small, key=problem.elements), *problem.adversarial, lowest]
        least = _least(problem, axis, [*bases, *problem.train[scale]])
        known = min(dims[axis.name] for dims in (*checked, *ends))
        if least is not None and least[axis.name] < known:
            ends.append(least)
    return tuple(ends)


@cache
def few_steps(problem: Problem, scale: Scale) -> Dims:
    """Returns sizes of about `FEW_STEPS` steps on each axis, as far as such sizes are legal.

    Sizes are none of those that prompts show, where a neighbour is legal and all sizes together
    stay small.
    """
    small = [_halved(problem, dims, None, FEW_STEPS) for dims in problem.train[scale]]
    dims = min(small, key=problem.elements)
    most = UNSHOWN_GROWTH * problem.elements(dims)
    shown = [point for points in problem.train.values() for point in points]
    for axis in problem.axes:
        beside = (dims[axis.name] + steps * axis.multiple for steps in (0, -1, 1, 2))
        moved = ({**dims, axis.name: size} for size in beside)
        unlike = (d for d in moved if d[axis.name] not in {point[axis.name] for point in shown})
        legal = (d for d in unlike if problem.legal(d) and problem.elements(d) <= most)
        dims = next(legal, dims)
    return dims


def _halved(problem: Problem, dims: Dims, kept: Axis | None, steps: int = NEAR_STEPS) -> Dims:
    """Returns a point whose axes but one are halved while some steps are left."""
    current = dims
    for axis in problem.axes:
        for _ in range(HALVINGS if axis != kept else 0):
            half = {**current, axis.name: _whole(current[axis.name] / 2, axis)}
            if half[axis.name] < axis.low + steps * axis.multiple or not problem.legal(half):
                break
            current = half
    return current


def _least(problem: Problem, axis: Axis, bases: Sequence[Dims]) -> Dims | None:
    """Returns the point with the least legal size of an axis beside other sizes of some point."""
    most = max(base[axis.name] for base in bases)
    sizes = range(axis.low, most + 1, axis.multiple)[:MAX_EDGE_STEPS]
    points = ({**base, axis.name: size} for size in sizes for base in bases)
    return next(filter(problem.legal, points), None)
