"""Starts: stored right kernels that an episode begins from, for the view `improve:TASK`.

An episode of a whole task has to find a right kernel first and to make it faster afterwards. The
view asks for the second part alone: the prompt shows a stored right kernel with the feedback and
the profile of its evaluation, and the reward is the gain over the reward of that kernel.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from kernel_gym.episodes.history import passed, sure_speedup
from kernel_gym.errors import InputError
from kernel_gym.feedback import feedback
from kernel_gym.inert import inert_text
from kernel_gym.judge.protocol import MAX_SOURCE_BYTES
from kernel_gym.records import Evaluation
from kernel_gym.storage.run_store import RunStore
from kernel_gym.tasks import Task

IMPROVE = "improve:"
"""The start of the name of a view, before the id of its task."""


class NoStart(InputError, ValueError):
    """There is no stored right kernel for a task."""


@dataclass(frozen=True)
class Start:
    """A right kernel and its evaluation.

    Attributes:
        source: The source.
        evaluation: Its record, complete or without what identifies hidden workloads.
    """

    source: str
    evaluation: Evaluation


@dataclass(frozen=True)
class Starts:
    """The stored right kernels by task id, the slowest first."""

    by_task: dict[str, tuple[Start, ...]] = field(default_factory=dict)

    @classmethod
    def of_runs(cls, folders: Iterable[str | Path]) -> Starts:
        """Reads the right kernels of run folders. Equal sources of a task count once.

        Raises:
            StoreError: A folder holds no run.
        """
        kernels: dict[str, dict[str, Start]] = {}
        for folder in folders:
            store = RunStore(Path(folder))
            for record in filter(passed, store.records()):
                source = store.source(record)
                kernels.setdefault(record.task, {})[source] = Start(source, record.evaluation)
        return cls(
            {
                task: tuple(sorted(starts.values(), key=lambda s: sure_speedup(s.evaluation)))
                for task, starts in kernels.items()
            }
        )

    def of(self, task: Task) -> tuple[Start, ...]:
        """The kernels of a task.

        Raises:
            NoStart: There is none.
        """
        starts = self.by_task.get(task.id, ())
        if not starts:
            known = ", ".join(sorted(self.by_task)) or "no task at all"
            raise NoStart(
                f"{IMPROVE}{task.id} has no right kernel to start from; the run folders in "
                f"'starts' have kernels of: {known}"
            )
        return starts


def improve_prompt(text: str, task: Task, start: Start) -> str:
    """The prompt of a view: that of the task, then the kernel and its feedback with the profile.

    Args:
        text: The prompt of the task.
        task: The task.
        start: The kernel to improve.
    """
    language = {"triton": "python", "hip": "cpp"}[task.language]
    source = inert_text(start.source, MAX_SOURCE_BYTES)
    return (
        f"{text}\n## Kernel to improve\nThe kernel below is right on every workload. "
        "Submit a faster one. Your reward is the gain over it.\n\n"
        f"```{language}\n{source}\n```\n\n## Its evaluation\n{feedback(task, start.evaluation)}\n"
    )
