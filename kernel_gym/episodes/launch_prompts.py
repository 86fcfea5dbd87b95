"""Prompts for policies that are too small to read a kernel: its launch."""

from __future__ import annotations

from kernel_gym.episodes.edits import launches, space_of
from kernel_gym.tasks import Task


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
        if task.start_source is None or task.written_in != "triton":
            raise ValueError(
                f"task {task.id!r} has no launch to edit: expected one of triton2triton, or "
                "another prompt than 'launch'"
            )
        return self.of(task, task.start_source)

    def of(self, task: Task, source: str) -> str:
        """The prompt for a task with another source to edit."""
        return "# Edit\n" + "\n".join(launches(source)) + "\n"
