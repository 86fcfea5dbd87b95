"""Prompts: the ways to describe a task to a policy."""

from __future__ import annotations

from collections.abc import Callable

from kernel_gym.devices import describe
from kernel_gym.episodes.chat import converse
from kernel_gym.episodes.edits import launches, space_of
from kernel_gym.episodes.episode import Prompt
from kernel_gym.tasks import Task, prompt, python_prototype, train_workloads
from kernel_gym.tasks.task import Mode

__all__ = ["PROMPTS", "LaunchPrompt", "Prompt", "brief_prompt", "converse", "full_prompt"]


def full_prompt(device: str) -> Prompt:
    """Prompts as `KernelOpt-v0` shows them: device, operation, sources, workloads, rules, guide.

    Args:
        device: A device name. The prompt states its facts and has its guide.
    """

    def write(task: Task) -> str:
        described = describe(device)
        workloads = train_workloads(task.problem, described.scale)
        return prompt(task, described.facts, workloads, described.spec.arch)

    return write


def brief_prompt(device: str) -> Prompt:
    """Prompts of a few lines, for policies with a short context: task, signature, workloads.

    Args:
        device: A device name. The workloads have the sizes that it is timed with.
    """

    def write(task: Task) -> str:
        scale = describe(device).scale
        verb = "Speed up" if task.mode is Mode.TRITON2TRITON else "Write"
        workloads = "\n".join(f"# {w}" for w in train_workloads(task.problem, scale))
        summary = f"# {verb} {task.problem.name}: {task.problem.summary}"
        return f"{summary}\n{python_prototype(task.problem)}\n{workloads}\n"

    return write


class LaunchPrompt:
    """Prompts with one statement, the launch of the start kernel; the answer is an edit of it.

    They are for policies that are too small to read a kernel.

    Args:
        device: A device name. It decides which numbers a launch may have, but not the text.

    Attributes:
        space: The numbers that a launch may have.
    """

    def __init__(self, device: str) -> None:
        self.space = space_of(device)

    def __call__(self, task: Task) -> str:
        """The prompt for a task.

        Raises:
            ValueError: The task has no start kernel in Triton.
        """
        if task.start_source is None or task.language != "triton":
            raise ValueError(
                f"task {task.id!r} has no launch to edit: expected one of triton2triton, or "
                "another prompt than 'launch'"
            )
        return self.of(task, task.start_source)

    def of(self, task: Task, source: str) -> str:
        """The prompt for a task with another source to edit."""
        return "# Edit\n" + "\n".join(launches(source)) + "\n"


PROMPTS: dict[str, Callable[[str], Prompt]] = {
    "full": full_prompt,
    "brief": brief_prompt,
    "launch": LaunchPrompt,
}
"""The kinds of prompts by name; each is made for a device."""
