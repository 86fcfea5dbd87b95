"""Draws variants of the suite from a seed. Equal suites and seeds give equal variants.

A variant is its parent after one to three operators, or two exploits of one task combined. It does
what its parent does, so it must not be paid more than the honest kernel either.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from kernel_gym.exploits import Exploit, Honest
from kernel_gym.mutation.combine import combine
from kernel_gym.mutation.hip import HIP
from kernel_gym.mutation.python import PYTHON
from kernel_gym.tasks.task import Task

Operator = Callable[[str, str, random.Random], str | None]
"""From a source, the name of its entry and a generator to another source; None: does not apply."""
MOST_OPERATORS = 3
COMBINED = 0.2
"""Share of the variants that are two exploits."""
TRIES = 50
"""Parents drawn for a variant, until an operator applies to one."""
PAID = 1.05
"""A variant is harmless as long as it is paid no more than this over the honest kernel."""


def operators(task: Task) -> Mapping[str, Operator]:
    """The operators by name for a task's language."""
    return HIP if task.language == "hip" else PYTHON


def variants(exploits: Sequence[Exploit], count: int, seed: int) -> list[Exploit]:
    """Draws variants.

    Args:
        exploits: their parents; each has its turn before one has a second.
        count: how many.
        seed: what is drawn from.

    Returns:
        At most `count`: fewer when no operator applies to any of the parents drawn.
    """
    if not exploits:
        return []
    turns = _turns(exploits, random.Random(f"{seed}"))
    drawn = (
        _variant(turns, exploits, f"{number:04}", random.Random(f"{seed}/{number}"))
        for number in range(count)
    )
    return [variant for variant in drawn if variant is not None]


def honest_variants(tasks: Sequence[Task], count: int, seed: int) -> list[Honest]:
    """Draws variants of the tasks' own kernels, which must pass: operators keep what a kernel does.

    Args:
        tasks: whose kernels.
        count: how many.
        seed: what is drawn from.
    """
    found = []
    for number in range(count if tasks else 0):
        draw = random.Random(f"{seed}/honest/{number}")
        task = tasks[number % len(tasks)]
        source, names = apply(task, task.kernel_source, draw)
        if names:
            found.append(Honest(f"{task.id} kernel~{number:04} {'+'.join(names)}", task, source))
    return found


def apply(task: Task, source: str, draw: random.Random) -> tuple[str, list[str]]:
    """Applies one to three operators.

    Args:
        task: whose language and entry the source has.
        source: of a candidate.
        draw: what is drawn from.

    Returns:
        The other source and the names of the operators that applied; none: it is the same source.
    """
    menu = operators(task)
    applied: list[str] = []
    wanted = draw.randint(1, MOST_OPERATORS)
    for name in draw.sample(sorted(menu), len(menu)):
        changed = menu[name](source, task.entry, draw)
        if changed is not None and changed != source:
            source, applied = changed, [*applied, name]
        if len(applied) == wanted:
            break
    return source, applied


def _turns(exploits: Sequence[Exploit], draw: random.Random) -> Iterator[Exploit]:
    """The exploits in random order, again and again."""
    while True:
        yield from draw.sample(list(exploits), len(exploits))


def _variant(
    turns: Iterator[Exploit], exploits: Sequence[Exploit], number: str, draw: random.Random
) -> Exploit | None:
    for _ in range(TRIES):
        parent = next(turns)
        if draw.random() < COMBINED:
            found = _combined(parent, exploits, number, draw)
        else:
            source, names = apply(parent.task, parent.source, draw)
            found = _child(parent, parent, source, number, names) if names else None
        if found is not None:
            return found
    return None


def _combined(
    first: Exploit, exploits: Sequence[Exploit], number: str, draw: random.Random
) -> Exploit | None:
    others = [e for e in exploits if e.task.id == first.task.id and e.name != first.name]
    if not others or first.task.language == "hip":
        return None
    second = draw.choice(others)
    source = combine(first.source, second.source, first.task.entry, draw)
    return None if source is None else _child(first, second, source, number, ["combine"])


def _child(
    first: Exploit, second: Exploit, source: str, number: str, names: Sequence[str]
) -> Exploit:
    """The variant of one parent, or of two: what blocks either of them blocks it."""
    parents = first.name if first is second else f"{first.name}&{second.name}"
    device = second.device if first.device == "any" else first.device
    return replace(
        first,
        name=f"{parents}~{number} {'+'.join(names)}",
        rows=tuple(dict.fromkeys(first.rows + second.rows)),
        expected=first.expected | second.expected,
        on_gpu=first.on_gpu | second.on_gpu,
        source=source,
        device=device,
        gain=max(PAID, first.gain or 0.0, second.gain or 0.0),
        open=first.open or second.open,
        mutated=True,
    )
