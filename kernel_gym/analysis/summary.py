"""The summary of a run: the best submission of each task, and a few figures over all tasks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from kernel_gym.episodes.history import best_turn
from kernel_gym.records import Clock, clamped
from kernel_gym.storage.run_records import TurnRecord
from kernel_gym.storage.run_store import RunStore
from kernel_gym.tasks.workload import Split


@dataclass(frozen=True)
class TaskSummary:
    """One task of a run."""

    task: str
    outcomes: tuple[str, ...]
    """The outcome of each submission."""
    rewards: tuple[float | None, ...]
    """The reward of each submission."""
    samples: tuple[int, ...]
    """The episode of each submission."""
    best_turn: int | None
    """The turn of the best correct submission; None if none is correct."""
    best_sample: int | None
    """The episode of the best correct submission; None if none is correct."""
    reward: float | None
    """The highest reward of a submission."""
    speedup: float | None
    unseen_speedup: float | None
    source: str = ""
    """The file of the best submission in the run folder; empty if none is correct."""
    copied: bool = False
    """Whether the best submission is the start kernel up to comments and layout."""
    clamped: int = 0
    """Number of train workloads of the best submission whose ratio of times counts as a limit."""


@dataclass(frozen=True)
class RunSummary:
    """A whole run. Speedups are geometric means of the best submissions of the solved tasks."""

    tasks: tuple[TaskSummary, ...]
    submissions: int
    unfinished: int
    """Number of tasks with an episode that is not over."""
    solved: int
    speedup: float | None
    unseen_speedup: float | None
    mean_reward: float | None
    copies: int
    """Number of solved tasks whose best submission is the start kernel."""
    clamped: int
    """Number of solved tasks in whose speedup at least one ratio of times counts as a limit."""
    clock: Clock | None
    """Whether times are modelled or measured; None for a run without submissions."""

    def as_dict(self) -> dict[str, object]:
        """Plain data for JSON."""
        return asdict(self)


def summarise(store: RunStore) -> RunSummary:
    """The summary of a run.

    Args:
        store: The run, finished or not.
    """
    unfinished = len({task for task, _ in store.unfinished()})
    return summarise_records(store.config.tasks, store.records(), unfinished)


def summarise_records(
    task_ids: Iterable[str], records: Sequence[TurnRecord], unfinished: int
) -> RunSummary:
    """The summary of records, which need not be in a store.

    Args:
        task_ids: The tasks, in the order of the summary.
        records: Submissions on them.
        unfinished: The number of tasks with an episode that is not over.
    """
    turns: dict[str, list[TurnRecord]] = {task_id: [] for task_id in task_ids}
    for record in records:
        turns[record.task].append(record)
    tasks = tuple(summarise_task(task_id, own) for task_id, own in turns.items())
    solved = [task for task in tasks if task.best_turn is not None]
    rewards = [task.reward for task in tasks if task.reward is not None]
    return RunSummary(
        tasks=tasks,
        submissions=len(records),
        unfinished=unfinished,
        solved=len(solved),
        speedup=geometric_mean(task.speedup for task in solved),
        unseen_speedup=geometric_mean(task.unseen_speedup for task in solved),
        mean_reward=sum(rewards) / len(rewards) if rewards else None,
        copies=sum(task.copied for task in solved),
        clamped=sum(task.clamped > 0 for task in solved),
        clock=records[0].evaluation.clock if records else None,
    )


def summarise_task(task_id: str, turns: Iterable[TurnRecord]) -> TaskSummary:
    """The summary of the submissions on one task."""
    turns = list(turns)
    best = best_turn(turns)
    rewards = [turn.reward for turn in turns if turn.reward is not None]
    return TaskSummary(
        task=task_id,
        outcomes=tuple(str(turn.evaluation.outcome) for turn in turns),
        rewards=tuple(turn.reward for turn in turns),
        samples=tuple(turn.sample for turn in turns),
        best_turn=best.turn if best else None,
        best_sample=best.sample if best else None,
        reward=max(rewards, default=None),
        speedup=best.evaluation.speedup if best else None,
        unseen_speedup=best.evaluation.unseen_speedup if best else None,
        source=best.source if best else "",
        copied=best is not None and best.evaluation.copied,
        clamped=clamped(best.evaluation.by_split(Split.TRAIN)) if best else 0,
    )


def geometric_mean(values: Iterable[float | None]) -> float | None:
    """The geometric mean of the values that are neither None nor 0; None if there are none.

    Example:
        >>> geometric_mean([2.0, 8.0, None])
        4.0
    """
    logs = [math.log(value) for value in values if value]
    return round(math.exp(sum(logs) / len(logs)), 12) if logs else None
