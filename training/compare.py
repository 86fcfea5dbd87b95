"""Runs against a first one, task by task."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np

from kernel_gym.store import RunStore, StoreError
from kernel_gym.training.estimators import Estimate, paired
from kernel_gym.training.metrics import MEASURES, Attempt, attempts, by_task


@dataclass(frozen=True)
class Comparison:
    """One run against the first.

    Attributes:
        tasks: The tasks that both played.
        left_out: Those that one of them did not.
        changes: By measure: the first run's value, this run's, and the change with its interval; a
            difference, or where values are geometric means a factor.
    """

    tasks: tuple[str, ...]
    left_out: tuple[str, ...]
    changes: dict[str, Change]


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

    The interval is a paired bootstrap: tasks are drawn anew, each with both runs' attempts, so that
    what makes a task hard does not count as a difference (Efron and Tibshirani 1993, chapter 8).

    Args:
        first: What is compared with.
        other: What is compared.

    Returns:
        The changes. Rewards are compared only where both runs were scored alike.

    Raises:
        StoreError: The runs have no task in common, or were not made on the same device.
    """
    mine, theirs = first.config, other.config
    if mine.device != theirs.device:
        raise StoreError(
            f"{other.folder} ran on {theirs.device}, not on {mine.device} as {first.folder} did: "
            "their times cannot be compared"
        )
    before, after = by_task(attempts(first)), by_task(attempts(other))
    tasks = tuple(task for task in before if task in after)
    if not tasks:
        raise StoreError(f"{first.folder} and {other.folder} have no task in common")
    left_out = tuple(sorted({*mine.tasks, *theirs.tasks} - set(tasks)))
    names = [name for name in MEASURES if name != "reward" or mine.reward == theirs.reward]
    pairs = [(before[task], after[task]) for task in tasks]
    return Comparison(tasks, left_out, {name: _change(name, pairs) for name in names})


def _change(name: str, pairs: Sequence[tuple[list[Attempt], list[Attempt]]]) -> Change:
    value, link = MEASURES[name]
    means = np.array([[statistics.fmean(map(value, side)) for side in pair] for pair in pairs])
    before, after = (float(x) for x in link(means.mean(axis=0)))
    found = astuple(paired(means[:, 0].tolist(), means[:, 1].tolist()))
    change = Estimate(*(None if x is None else float(link(np.asarray(x))) for x in found))
    return Change(before, after, change, factor=link is np.exp)
