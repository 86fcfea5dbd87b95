"""The subject of an episode: one task, a suite, several with weights, or a kernel to improve."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kernel_gym.episodes.starts import IMPROVE, Start, Starts
from kernel_gym.tasks import Task, get_task, load_suite
from kernel_gym.tasks.names import PREFIX
from kernel_gym.tasks.small_floats import require_runs_on, runs_on

TaskChoice = str | Sequence[str] | Mapping[str, float]
"""A task id (also `generated:seed=1,depth=3`), a suite (a name or `.toml` path), one of these after
`improve:`, a list of these, or a mapping from these to weights."""


@dataclass(frozen=True)
class View:
    """The subject of an episode.

    Attributes:
        task: The task.
        start: The right kernel that the policy should improve; None to write one from scratch.
    """

    task: Task
    start: Start | None = None


class TaskSampler:
    """Draws tasks.

    The tasks of a suite share its weight evenly. The weights of a task that occurs twice add up.

    Args:
        choice: A task id, a suite, a list of ids and suites, or a mapping from these to weights.
        arch: The device's architecture. Tasks that it lacks the instructions for are left out of
            suites.
        starts: The kernels that views `improve:TASK` start from.

    Raises:
        NoStart: A view has no kernel to start from.
        UnfitDevice: A task is named that the architecture lacks the instructions for.
        ValueError: The choice is empty, or a weight is negative or not finite.
        KeyError: A name is unknown; the message has near matches.

    Example:
        >>> tasks = TaskSampler({"triton2triton/softmax": 3.0, "triton2triton/gelu": 1.0})
        >>> tasks.probabilities
        {'triton2triton/softmax': 0.75, 'triton2triton/gelu': 0.25}
    """

    def __init__(self, choice: TaskChoice, arch: str = "", starts: Starts | None = None) -> None:
        self._starts = starts or Starts()
        if isinstance(choice, str):
            choice = [choice]
        if not isinstance(choice, Mapping):
            names = list(choice)
            choice = {name: float(len(_ids(name, arch)) * names.count(name)) for name in names}
        weights: dict[str, float] = {}
        for name, weight in choice.items():
            if isinstance(weight, bool) or not (math.isfinite(weight) and weight >= 0):
                raise ValueError(f"weight of {name!r}: found {weight!r}, expected 0 or more")
            ids = _ids(name, arch)
            for task_id in ids:
                weights[task_id] = weights.get(task_id, 0.0) + weight / len(ids)
        total = sum(weights.values())
        if total <= 0:
            raise ValueError(
                "task: found nothing to draw from, expected a task, a suite or weights"
            )
        for name in weights:
            if name.startswith(IMPROVE):
                self._starts.of(get_task(name.removeprefix(IMPROVE)))
        self.probabilities = {task: weight / total for task, weight in weights.items() if weight}
        """The probability of each task or view, by its id."""

    def draw(self, random: np.random.Generator) -> View:
        """Draws one task; for a view also one of its kernels, each with the same probability."""
        ids, shares = list(self.probabilities), list(self.probabilities.values())
        if len(set(shares)) == 1:
            name = ids[int(random.integers(len(ids)))]
        else:
            name = ids[int(random.choice(len(ids), p=shares))]
        if not name.startswith(IMPROVE):
            return View(get_task(name))
        task = get_task(name.removeprefix(IMPROVE))
        starts = self._starts.of(task)
        return View(task, starts[int(random.integers(len(starts)))])


def _ids(name: str, arch: str) -> tuple[str, ...]:
    if name.startswith(IMPROVE):
        return tuple(f"{IMPROVE}{task}" for task in _ids(name.removeprefix(IMPROVE), arch))
    if name.startswith(PREFIX) or ("/" in name and not name.endswith(".toml")):
        task = get_task(name)
        if arch:
            require_runs_on(task.problem, arch)
        return (task.id,)
    tasks = load_suite(name).tasks
    return tuple(task.id for task in tasks if not arch or runs_on(task.problem, arch))
