"""Proposes the sizes of calls: which recorded ones to keep, and others near them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence

from kernel_gym.imports.recorded.problem import CALL, RecordedProblem, StatedWorkload
from kernel_gym.tasks.workload import Kind

_TILES = (16, 32, 64, 128, 256)


def chosen(
    problem: RecordedProblem, recorded: Sequence[Mapping[str, int]], most: int
) -> list[Mapping[str, int]]:
    """Returns the calls to keep: one of each template first, small ones before large ones.

    Args:
        problem: The problem, which knows the size of a call.
        recorded: The dimensions of recorded calls.
        most: How many to keep.
    """
    ordered = sorted(recorded, key=problem.elements)
    first: dict[int, Mapping[str, int]] = {}
    for dims in ordered:
        first.setdefault(dims[CALL], dims)
    others = [dims for dims in ordered if dims is not first[dims[CALL]]]
    kept = [*first.values()][:most]
    left = most - len(kept)
    step = max(1, len(others) // left) if left else 1
    return kept + (others[step - 1 :: step][:left] if left else [])


def proposals(train: Sequence[StatedWorkload], name: str) -> Iterator[tuple[Kind, dict[str, int]]]:
    """Proposes other sizes near those of train workloads, of all kinds in turn.

    Args:
        train: The train workloads.
        name: The name of the problem, which decides what is drawn.
    """
    rng = random.Random(name)
    bases = [dict(one.dims) for one in train if len(one.dims) > 1]
    for number in range(64 if bases else 0):
        base = bases[number % len(bases)]
        names = [name for name in base if name != CALL]
        some = rng.sample(names, rng.randint(1, len(names)))
        kind = (Kind.SCALE_UP, Kind.SCALE_DOWN, Kind.ALIGNMENT, Kind.ASPECT, Kind.PRODUCTION)[
            number % 5
        ]
        yield kind, _moved(kind, base, some, rng)


def _moved(
    kind: Kind, base: dict[str, int], some: Sequence[str], rng: random.Random
) -> dict[str, int]:
    if kind is Kind.SCALE_UP:
        factor = rng.choice((1.25, 1.5, 2.0))
        return base | {name: round(base[name] * factor) for name in some}
    if kind is Kind.SCALE_DOWN:
        return base | {name: max(1, base[name] // rng.choice((2, 4))) for name in some}
    if kind is Kind.ALIGNMENT:
        return base | {some[0]: max(1, base[some[0]] + rng.choice((-3, -1, 1, 5)))}
    if kind is Kind.ASPECT:
        moved = base | {some[0]: base[some[0]] * 2}
        return moved | {name: max(1, base[name] // 2) for name in some[1:]}
    return base | {name: rng.choice(_TILES) for name in some[:1]}


def odd_sizes(train: Sequence[StatedWorkload]) -> Iterator[tuple[Kind, dict[str, int]]]:
    """Proposes odd sizes and ones."""
    for one in train:
        base = dict(one.dims)
        names = [name for name in base if name != CALL]
        if names:
            yield Kind.ADVERSARIAL, base | {name: base[name] | 1 for name in names}
        for name in names:
            yield Kind.ADVERSARIAL, base | {name: base[name] | 1}
            yield Kind.ADVERSARIAL, base | {name: 1}
