"""How much of what several runs got right is explained by the tasks' category, and by the run.

KernelBenchX (arXiv 2605.04956) asks this of methods: category explained 9.4 % of the deviance of
its correctness, and method 3.3 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernel_gym.analysis.estimators import Deviance, explained_deviance
from kernel_gym.analysis.metrics import attempts, by_task
from kernel_gym.storage.json_lines import StoreError
from kernel_gym.storage.run_store import RunStore
from kernel_gym.tasks import get_task


@dataclass(frozen=True)
class Decomposition:
    """Shares of the correctness of attempts that the category and the run explain.

    Attributes:
        tasks: The tasks that all runs played.
        category: The share that the category of a task explains; None if it can explain nothing.
        run: The share that the run explains.
    """

    tasks: tuple[str, ...]
    category: Deviance | None
    run: Deviance | None


def decompose(runs: Sequence[RunStore]) -> Decomposition:
    """Decomposes the correctness of the attempts of several runs on the tasks that all played.

    Each factor has a binomial GLM of its own, see `explained_deviance`. The test of the category
    permutes it among tasks, and that of the run permutes the runs of each task.

    Raises:
        StoreError: The runs have no finished task in common.
    """
    played = [by_task(attempts(run)) for run in runs]
    tasks = tuple(task for task in played[0] if all(task in other for other in played))
    if not tasks:
        raise StoreError(f"{len(runs)} runs played no task in common")
    right = np.array([[sum(a.correct for a in run[task]) for task in tasks] for run in played])
    counts = np.array([[len(run[task]) for task in tasks] for run in played])
    categories = [get_task(task).problem.category for task in tasks]
    number_of_run, number_of_task = np.indices(right.shape)
    names = list(number_of_run.ravel().astype(str))
    values = list(right.ravel()), list(counts.ravel())
    return Decomposition(
        tasks,
        category=explained_deviance(categories, list(right.sum(0)), list(counts.sum(0))),
        run=explained_deviance(names, *values, blocks=list(number_of_task.ravel())),
    )
