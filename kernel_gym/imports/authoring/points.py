"""Chooses the sizes of workloads: those of the code for GPUs, small twins for the simulator."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence

from kernel_gym.imports.authoring.space import FreeAxis

Dims = dict[str, int]
Cost = Callable[[Dims], tuple[int, int]]
"""Bytes and FLOPs at given sizes."""
SIM_BYTES, SIM_FLOPS = 1_200_000, 16_000_000
"""The most that a twin should cost, so that a whole evaluation takes seconds."""
MAX_SIM_BYTES, MAX_SIM_FLOPS = 5_000_000, 95_000_000
"""The most that the smallest twin may cost."""
NUMBER = 3
"""Train workloads of a scale."""
_ALL = 8
"""Train and production workloads of a scale."""
_SMALL = 16


class TooDear(ValueError):
    """The smallest sizes cost too much for the simulator."""


def full_points(
    axes: Sequence[FreeAxis], base: Dims, stated: Sequence[Mapping[str, int]] = ()
) -> list[Dims]:
    """Returns stated sizes, and others near those of the code, smaller ones above all.

    Args:
        axes: The free sizes.
        base: The sizes of the code.
        stated: Sizes to prefer, which may have other names as well. They are taken evenly, from
            the smallest to the largest. Those that an axis does not allow are left out.
    """
    legal = [
        {axis.name: point[axis.name] for axis in axes}
        for point in stated
        if all(_allows(axis, point.get(axis.name, 0)) for axis in axes)
    ]
    if len(axes) == 1:  # the least size of an only axis is left for unseen workloads
        legal = [dims for dims in legal if dims[axes[0].name] > axes[0].low]
    legal = [dims for number, dims in enumerate(legal) if dims not in legal[:number]]
    legal.sort(key=lambda dims: math.prod(dims.values()))
    spread = [legal[number * len(legal) // _ALL] for number in range(_ALL) if legal]
    chosen = [dims for number, dims in enumerate(spread) if dims not in spread[:number]]
    near = _varied(axes, base, (0.5, 0.75, 0.25, 1.0, 0.375, 1.25), lambda dims: True)
    return [*chosen, *(dims for dims in near if dims not in chosen)][:_ALL]


def _allows(axis: FreeAxis, size: int) -> bool:
    return axis.low <= size <= max(axis.high, axis.low) and size % axis.multiple == 0


def sim_points(axes: Sequence[FreeAxis], base: Dims, cost: Cost) -> list[Dims]:
    """Returns twins that are cheap enough for the simulator.

    Raises:
        TooDear: There are none.
    """
    dims = dict(base)
    pairs = zip(cost({axis.name: axis.low for axis in axes}), (SIM_BYTES, SIM_FLOPS), strict=True)
    aims = [max(aim, fixed + aim // 2) for fixed, aim in pairs]  # a part may be fixed, as a mask
    while not _cheap(cost(dims), *aims):
        smaller = _shrunk(axes, dims)
        if smaller is None:
            break
        dims = smaller
    if not _cheap(cost(dims), MAX_SIM_BYTES, MAX_SIM_FLOPS):
        moved, flops = cost(dims)
        raise TooDear(
            f"its smallest sizes cost {moved:,} bytes and {flops:,} FLOPs, at most "
            f"{MAX_SIM_BYTES:,} and {MAX_SIM_FLOPS:,} fit the simulator"
        )
    limit = [max(2 * c, least) for c, least in zip(cost(dims), (200_000, 1_000_000), strict=True)]
    return _varied(axes, dims, (1.5, 0.5, 2.0, 0.75, 1.25, 3.0), lambda d: _cheap(cost(d), *limit))


def _cheap(cost: tuple[int, int], most_bytes: int, most_flops: int) -> bool:
    return cost[0] <= most_bytes and cost[1] <= most_flops


def _shrunk(axes: Sequence[FreeAxis], dims: Dims) -> Dims | None:
    """Returns sizes with the largest axis halved, or None if none can be."""
    for floor in (_SMALL, 4, 1):
        able = [a for a in axes if dims[a.name] // 2 >= max(a.low, floor, a.multiple)]
        if able:
            axis = max(able, key=lambda a: dims[a.name])
            half = dims[axis.name] // 2 // axis.multiple * axis.multiple
            return {**dims, axis.name: half}
    able = [a for a in axes if dims[a.name] > a.low]
    return {**dims, able[0].name: able[0].low} if able else None


def _varied(
    axes: Sequence[FreeAxis],
    first: Dims,
    factors: Sequence[float],
    fits: Callable[[Dims], bool],
) -> list[Dims]:
    """Returns `_ALL` distinct sizes, the given one first."""
    points, rng = [first], random.Random(0)
    for attempt in range(200):
        if len(points) == _ALL:
            return points
        dims = dict(first)
        for axis in rng.sample(list(axes), rng.randint(1, min(2, len(axes)))):
            dims[axis.name] = _scaled(axis, first[axis.name], rng.choice(factors))
            if attempt > 100:
                size = axis.low + rng.randint(0, 12) * axis.multiple
                dims[axis.name] = max(axis.low, min(axis.high, size))
        if dims not in points and fits(dims):
            points.append(dims)
    raise TooDear("too few different sizes fit: give it more free sizes")


def _scaled(axis: FreeAxis, size: int, factor: float) -> int:
    return max(axis.low, min(axis.high, round(size * factor / axis.multiple) * axis.multiple))
