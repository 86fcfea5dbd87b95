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


def not_too_large(most: float | None) -> Callable[[Sequence[Point]], Kept]:
    """Keeps the points of at most so many multiplications; all if there is no limit."""
    return _keeping(
        lambda point: most is None or _work(point) <= most,
        lambda _: f"more than {most:.3g} multiplications, left out for processor time",
    )


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
    return sorted(drawn, key=_work)


def _drawn(points: Sequence[Point], count: int, seed: str) -> list[Point]:
    return random.Random(seed).sample(points, min(count, len(points)))


def _work(point: Point) -> int:
    return products(point.launch) if point.launch.get("language") == LANGUAGE else 0
