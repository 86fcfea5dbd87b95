"""A sampler of tasks by head-room and success: those that can be learned now are drawn more often.

The weight of a task is `room * (rate * (1 - rate) + least)`. `rate` is the share of its recent
episodes that succeeded, so that tasks that always or never succeed are drawn less often. `room` is
the stored head-room of its start kernel (`kernel-gym admit`), 1 if it is not known, on a log scale.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np

from kernel_gym.tasks import get_task
from kernel_gym.tasks.verdicts import stored_verdict

RECENT = 32
"""Episodes of a task that its rate is computed from."""
LEAST = 0.05
"""Weight that every task keeps, so that it is tried again."""


class Curriculum:
    """Draws task ids for `reset(options={"task": ...})` and learns from the episodes.

    Args:
        tasks: Task ids.
        room: The head-room of tasks; by default what their verdicts store.

    Raises:
        UnknownName: A task is unknown.
        ValueError: There are no tasks.
    """

    def __init__(self, tasks: Sequence[str], room: Mapping[str, float] | None = None) -> None:
        if not tasks:
            raise ValueError("tasks: found none, expected at least one")
        self._room = {name: _weight((room or {}).get(name) or head_room(name)) for name in tasks}
        self._recent = {name: deque[bool](maxlen=RECENT) for name in tasks}

    def record(self, task: str, success: bool) -> None:
        """Records an episode; leave masked ones out.

        Args:
            task: Its task.
            success: Whether it gained what the caller counts, such as a right kernel.
        """
        self._recent[task].append(success)

    @property
    def probabilities(self) -> dict[str, float]:
        """The probability of each task now."""
        weights = {name: self._room[name] * _learnable(r) for name, r in self._recent.items()}
        total = sum(weights.values())
        return {name: weight / total for name, weight in weights.items()}

    def draw(self, random: np.random.Generator) -> str:
        """Draws a task id."""
        shares = self.probabilities
        return list(shares)[int(random.choice(len(shares), p=list(shares.values())))]


def head_room(name: str) -> float:
    """The stored head-room of a task's start kernel; 1.0 if there is none."""
    task = get_task(name)
    verdict = stored_verdict(task.problem)
    return (verdict.head_room(task.mode) if verdict else None) or 1.0


def _weight(room: float) -> float:
    return 1.0 + math.log(max(room, 1.0))


def _learnable(recent: Sequence[bool] | deque[bool]) -> float:
    rate = sum(recent) / len(recent) if recent else 0.5
    return rate * (1.0 - rate) + LEAST
