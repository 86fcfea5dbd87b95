"""Proposes sizes of calls near recorded ones."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from kernel_gym.imports.recorded.problem import CALL
from kernel_gym.imports.recorded.stated import StatedWorkload
from kernel_gym.tasks.workload import Kind

_TILES = (16, 32, 64, 128, 256)
_KINDS = (
    Kind.REACH,
    Kind.SCALE_DOWN,
    Kind.ALIGNMENT,
    Kind.SCALE_UP,
    Kind.ASPECT,
    Kind.PRODUCTION,
)


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
        kind = _KINDS[(number + number // len(bases)) % len(_KINDS)]
        yield kind, _moved(kind, base, some, rng)


def _moved(
    kind: Kind, base: dict[str, int], some: Sequence[str], rng: random.Random
) -> dict[str, int]:
    if kind is Kind.REACH:
        return base | {some[0]: base[some[0]] * 4 + 1}
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
