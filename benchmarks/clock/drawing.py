"""Which points are predicted: those of the device, a seeded draw of each family, small ones first."""

from __future__ import annotations

import random
from collections.abc import Sequence

from benchmarks.clock.points import Point
from benchmarks.clock.tuning_rows import LANGUAGE, products


def of_device(points: Sequence[Point], device: str) -> tuple[list[Point], dict[str, str]]:
    """The points that a device can have, and by name of each other point the reason."""
    other = {
        point.identity: f"measured on {point.launch['gfx']}, not on {device}"
        for point in points
        if point.launch.get("gfx", device) != device
    }
    return [point for point in points if point.identity not in other], other


def not_too_large(
    points: Sequence[Point], most: float | None
) -> tuple[list[Point], dict[str, str]]:
    """The points of at most so many multiplications, and by name of each other one the reason."""
    if most is None:
        return list(points), {}
    large = {
        point.identity: f"more than {most:.3g} multiplications, left out for processor time"
        for point in points
        if _work(point) > most
    }
    return [point for point in points if point.identity not in large], large


def draw(points: Sequence[Point], each: int | None, seed: int) -> list[Point]:
    """At most so many points of each family, drawn; those of small problems come first.

    Args:
        points: All points.
        each: Points of a family; None for all.
        seed: Of the draw.
    """
    families: dict[str, list[Point]] = {}
    for point in points:
        families.setdefault(point.family, []).append(point)
    drawn = []
    for family, own in families.items():
        mixed = random.Random(f"{seed} {family}").sample(own, len(own))
        drawn += mixed[:each]
    return sorted(drawn, key=_work)


def _work(point: Point) -> int:
    return products(point.launch) if point.launch.get("language") == LANGUAGE else 0
