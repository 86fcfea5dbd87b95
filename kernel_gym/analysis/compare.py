"""Runs against a first one, task by task."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np

from kernel_gym.analysis.estimators import Estimate, paired
from kernel_gym.analysis.metrics import MEASURES, Attempt, attempts, by_task
from kernel_gym.storage.run_store import RunStore, StoreError


@dataclass(frozen=True)
class Comparison:
    """One run against the first.

    Attributes:
        tasks: The tasks with attempts in both that are over.
        left_out: Those without.
        unfinished: Of each run, the first one first, the attempts that are not over.
        asked: Of each run, the attempts that it was to make.
        changes: By measure: the first run's value, this run's, and the change with its interval; a
            difference, or where values are geometric means a factor.
    """

    tasks: tuple[str, ...]
    left_out: tuple[str, ...]
    unfinished: tuple[int, int]
    asked: tuple[int, int]
    changes: dict[str, Change]

    @property
    def complete(self) -> bool:
        """Whether both runs played all that they were to play."""
        return not any(self.unfinished)


@dataclass(frozen=True)
class Change:
    """One measure of two runs."""

    before: float
    after: float
    change: Estimate
    factor: bool
    """Whether the change is after over before, and not after less before."""


def compare(first: RunStore, other: RunStore) -> Comparison:
    """Compares two runs over the tasks that both played, each task counting equally.

    Only attempts that are over count, so that a run that was stopped has no failures for tasks that
    it never reached. The tasks that it did reach may still be the easier ones:
    :attr:`Comparison.complete` says whether both are whole.

    The interval is a paired bootstrap: tasks are drawn anew, each with both runs' attempts, so that
    what makes a task hard does not count as a difference (Efron and Tibshirani 1993, chapter 8).

    Args:
        first: What is compared with.
        other: What is compared.

    Returns:
        The changes. Rewards are compared only where both runs were scored alike.

    Raises:
        StoreError: The runs have no task in common that both played, or were not made on the same
            device.
    """
    mine, theirs = first.config, other.config
    if mine.device != theirs.device:
        raise StoreError(
            f"{other.folder} ran on {theirs.device}, not on {mine.device} as {first.folder} did: "
            "their times cannot be compared"
        )
    before, after = by_task(attempts(first)), by_task(attempts(other))
    for store, played in ((first, before), (other, after)):
        if not played:
            raise StoreError(f"{store.folder} has no attempt that is over: nothing to compare")
    tasks = tuple(task for task in before if task in after)
    if not tasks:
        raise StoreError(f"{first.folder} and {other.folder} played no task in common")
    left_out = tuple(sorted({*mine.tasks, *theirs.tasks} - set(tasks)))
    names = [name for name in MEASURES if name != "reward" or mine.reward == theirs.reward]
    pairs = [(before[task], after[task]) for task in tasks]
    return Comparison(
        tasks=tasks,
        left_out=left_out,
        unfinished=(len(first.unfinished()), len(other.unfinished())),
        asked=(len(mine.tasks) * mine.samples, len(theirs.tasks) * theirs.samples),
        changes={name: _change(name, pairs) for name in names},
    )


def _change(name: str, pairs: Sequence[tuple[list[Attempt], list[Attempt]]]) -> Change:
    value, link = MEASURES[name]
    means = np.array([[statistics.fmean(map(value, side)) for side in pair] for pair in pairs])
    before, after = (float(x) for x in link(means.mean(axis=0)))
    found = astuple(paired(means[:, 0].tolist(), means[:, 1].tolist()))
    change = Estimate(*(None if x is None else float(link(np.asarray(x))) for x in found))
    return Change(before, after, change, factor=link is np.exp)
