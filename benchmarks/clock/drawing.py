"""Which points are predicted: those of the device, a draw of each family, small ones first."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from benchmarks.clock.points import Point
from benchmarks.clock.tuning_rows import LANGUAGE, products

Kept = tuple[list[Point], dict[str, str]]
"""Points that stay, and by name of each other one the reason."""


def languages(points: Sequence[Point]) -> set[str]:
    """The languages of kernels beside Triton."""
    return {str(point.launch["language"]) for point in points if "language" in point.launch}


def of_device(device: str) -> Callable[[Sequence[Point]], Kept]:
    """Keeps the points that a device can have: other chips' times are not its own."""
    return _keeping(
        lambda point: point.launch.get("gfx", device) == device,
        lambda point: f"measured on {point.launch['gfx']}, not on {device}",
    )


def of_size(least: float, most: float | None) -> Callable[[Sequence[Point]], Kept]:
    """Keeps the points of more than `least` and at most so many multiplications.

    The work of points that are no rows of a tuning table is not known: they stay.
    """

    def fits(point: Point) -> bool:
        work = _work(point)
        return work is None or (least < work and (most is None or work <= most))

    def reason(point: Point) -> str:
        if (_work(point) or 0) <= least:
            return f"at most {least:.3g} multiplications"
        return f"more than {most:.3g} multiplications, left out for processor time"

    return _keeping(fits, reason)


def _keeping(
    wanted: Callable[[Point], bool], reason: Callable[[Point], str]
) -> Callable[[Sequence[Point]], Kept]:
    def keep(points: Sequence[Point]) -> Kept:
        kept = [point for point in points if wanted(point)]
        return kept, {point.identity: reason(point) for point in points if not wanted(point)}

    return keep


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
    drawn = [
        point
        for family, own in families.items()
        for point in (own if each is None else _drawn(own, each, f"{seed} {family}"))
    ]
    return sorted(drawn, key=lambda point: _work(point) or 0)


def _drawn(points: Sequence[Point], count: int, seed: str) -> list[Point]:
    return random.Random(seed).sample(points, min(count, len(points)))


def _work(point: Point) -> int | None:
    return products(point.launch) if point.launch.get("language") == LANGUAGE else None
