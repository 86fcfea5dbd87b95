"""Compares a run with another one, task by task."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np

from kernel_gym.analysis.differences import Difference, differences
from kernel_gym.analysis.estimators import Estimate, paired
from kernel_gym.analysis.metrics import MEASURES, EpisodeAttempt, attempts, by_task
from kernel_gym.storage.json_lines import StoreError
from kernel_gym.storage.run_store import RunStore


@dataclass(frozen=True)
class Comparison:
    """A comparison of two runs.

    Attributes:
        tasks: The tasks with finished attempts in both runs.
        left_out: The other tasks.
        unfinished: The number of unfinished attempts in the first and in the second run.
        asked: The number of attempts planned in the first and in the second run.
        changes: The change of each metric.
        differences: What the runs have different beside their policies, such as the secret that
            draws data and unseen shapes.
    """

    tasks: tuple[str, ...]
    left_out: tuple[str, ...]
    unfinished: tuple[int, int]
    asked: tuple[int, int]
    changes: dict[str, MetricChange]
    differences: tuple[Difference, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether both runs are finished."""
        return not any(self.unfinished)


@dataclass(frozen=True)
class MetricChange:
    """The change of one metric between two runs."""

    before: float
    after: float
    change: Estimate
    """The change with its interval."""
    factor: bool
    """Whether the change is `after / before`, as for geometric means, and not `after - before`."""


def compare(first: RunStore, other: RunStore) -> Comparison:
    """Compares two runs over the tasks that both played, with equal weights.

    Only finished attempts count, so that a run that was stopped has no failures for tasks that it
    did not reach. The tasks that it did reach may still be the easier ones, so check
    :attr:`Comparison.complete`.

    The interval is a paired bootstrap: it resamples tasks, each with the attempts of both runs, so
    that the difficulty of a task cancels (Efron and Tibshirani 1993, chapter 8).

    Args:
        first: The run to compare with.
        other: The run to compare.

    Returns:
        The changes. Rewards are compared only if both runs have the same reward.

    Raises:
        StoreError: The runs have no finished task in common, or their devices differ.
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
        differences=differences(first, other),
    )


def _change(
    name: str, pairs: Sequence[tuple[list[EpisodeAttempt], list[EpisodeAttempt]]]
) -> MetricChange:
    value, link = MEASURES[name]
    means = np.array([[statistics.fmean(map(value, side)) for side in pair] for pair in pairs])
    before, after = (float(x) for x in link(means.mean(axis=0)))
    difference = astuple(paired(means[:, 0].tolist(), means[:, 1].tolist()))
    change = Estimate(*(None if x is None else float(link(np.asarray(x))) for x in difference))
    return MetricChange(before, after, change, factor=link is np.exp)
