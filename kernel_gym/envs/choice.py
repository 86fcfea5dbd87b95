"""The choice of an episode's task: one task, a suite, or several with weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from kernel_gym.tasks import Task, get_task, load_suite
from kernel_gym.tasks.names import PREFIX
from kernel_gym.tasks.small_floats import require_runs_on, runs_on

TaskChoice = str | Sequence[str] | Mapping[str, float]
"""A task id (also `generated:seed=1,depth=3`), a suite (a name or a `.toml` path), a list of these,
or a mapping from these to weights."""


class Tasks:
    """Draws tasks.

    The tasks of a suite share its weight evenly. The weights of a task that occurs twice add up.

    Args:
        choice: A task id, a suite, a list of ids and suites, or a mapping from these to weights.
        arch: The device's architecture. Tasks that it lacks the instructions for are left out of
            suites.

    Raises:
        UnfitDevice: A task is named that the architecture lacks the instructions for.
        ValueError: The choice is empty, or a weight is negative or not finite.
        KeyError: A name is unknown; the message has near matches.

    Example:
        >>> tasks = Tasks({"triton2triton/softmax": 3.0, "triton2triton/gelu": 1.0})
        >>> tasks.probabilities
        {'triton2triton/softmax': 0.75, 'triton2triton/gelu': 0.25}
    """

    def __init__(self, choice: TaskChoice, arch: str = "") -> None:
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
        self.probabilities = {task: weight / total for task, weight in weights.items() if weight}
        """The probability of each task, by its id."""

    def draw(self, random: np.random.Generator) -> Task:
        """Draws one task."""
        ids, shares = list(self.probabilities), list(self.probabilities.values())
        if len(set(shares)) == 1:
            return get_task(ids[int(random.integers(len(ids)))])
        return get_task(ids[int(random.choice(len(ids), p=shares))])


def _ids(name: str, arch: str) -> tuple[str, ...]:
    if name.startswith(PREFIX) or ("/" in name and not name.endswith(".toml")):
        task = get_task(name)
        if arch:
            require_runs_on(task.problem, arch)
        return (task.id,)
    tasks = load_suite(name).tasks
    return tuple(task.id for task in tasks if not arch or runs_on(task.problem, arch))
