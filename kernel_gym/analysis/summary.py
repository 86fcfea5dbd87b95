"""What a run comes to: the best submission of each task, and a few figures over all tasks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from kernel_gym.records import Clock, Evaluation, Outcome
from kernel_gym.storage.run_store import RunStore, TurnRecord


@dataclass(frozen=True)
class TaskSummary:
    """One task of a run."""

    task: str
    outcomes: tuple[str, ...]
    rewards: tuple[float | None, ...]
    """Of each turn, like `outcomes`."""
    samples: tuple[int, ...]
    """Which episode each turn was in, like `outcomes`."""
    best_turn: int | None
    """The turn of the best correct submission; None when none is correct."""
    best_sample: int | None
    reward: float | None
    """The best reward of any submission."""
    speedup: float | None
    unseen_speedup: float | None


@dataclass(frozen=True)
class RunSummary:
    """A whole run. Speedups are geometric means over the solved tasks, of the best submissions."""

    tasks: tuple[TaskSummary, ...]
    submissions: int
    unfinished: int
    """Tasks with an episode that is not over, of those that were to be played."""
    solved: int
    speedup: float | None
    unseen_speedup: float | None
    mean_reward: float | None
    clock: Clock | None
    """Whether the times are modelled or measured; None for a run without submissions."""

    def as_dict(self) -> dict[str, object]:
        """Plain data for JSON."""
        return asdict(self)


def summarise(store: RunStore) -> RunSummary:
    """Sums up a run.

    Args:
        store: The run.

    Returns:
        One line a task, and the figures over all of them.
    """
    unfinished = len({task for task, _ in store.unfinished()})
    return summarise_records(store.config.tasks, store.records(), unfinished)


def summarise_records(
    task_ids: Iterable[str], records: Sequence[TurnRecord], unfinished: int
) -> RunSummary:
    """Sums up records that need not be those of a store, over the given tasks.

    Args:
        task_ids: The tasks, in the order wanted.
        records: Submissions on them.
        unfinished: How many of the tasks have an episode that is not over.
    """
    turns: dict[str, list[TurnRecord]] = {task_id: [] for task_id in task_ids}
    for record in records:
        turns[record.task].append(record)
    tasks = tuple(summarise_task(task_id, found) for task_id, found in turns.items())
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
        clock=records[0].evaluation.clock if records else None,
    )


def summarise_task(task_id: str, turns: Iterable[TurnRecord]) -> TaskSummary:
    """Sums up the submissions on one task."""
    turns = list(turns)
    best = best_submission(turns)
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
    )


def best_submission(turns: Iterable[TurnRecord]) -> TurnRecord | None:
    """The correct submission whose speedup has the highest lower bound, the first of equals."""
    correct = [turn for turn in turns if turn.evaluation.outcome is Outcome.PASSED]
    return max(correct, key=lambda turn: _least_speedup(turn.evaluation), default=None)


def _least_speedup(evaluation: Evaluation) -> float:
    return evaluation.speedup_low or evaluation.speedup or 0.0


def geometric_mean(values: Iterable[float | None]) -> float | None:
    """Geometric mean of those that are there; None when none is.

    Example:
        >>> geometric_mean([2.0, 8.0, None])
        4.0
    """
    logs = [math.log(value) for value in values if value]
    return round(math.exp(sum(logs) / len(logs)), 12) if logs else None
