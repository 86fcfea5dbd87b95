"""Episodes as chats: the prompt, then submissions and feedback in turn."""

from __future__ import annotations

from collections.abc import Callable

from kernel_gym.devices import describe
from kernel_gym.episodes.chat import Conversation, Message
from kernel_gym.episodes.edits import launches, space_of
from kernel_gym.episodes.episode import Episode
from kernel_gym.tasks import Task, prompt, python_prototype, train_workloads
from kernel_gym.tasks.task import Mode

Prompt = Callable[[Task], str]


def full_prompt(device: str) -> Prompt:
    """The prompts of `KernelOpt-v0`: device, operation, sources, workloads, rules, scoring, guide.

    Args:
        device: A device name; its facts, guide and scale of workloads are in the prompt.
    """

    def write(task: Task) -> str:
        described = describe(device)
        workloads = train_workloads(task.problem, described.scale)
        return prompt(task, described.facts, workloads, described.spec.arch)

    return write


def brief_prompt(device: str) -> Prompt:
    """Prompts of a few lines, for policies with a short context: task, signature, workloads."""

    def write(task: Task) -> str:
        scale = describe(device).scale
        verb = "Speed up" if task.mode is Mode.TRITON2TRITON else "Write"
        workloads = "\n".join(f"# {w}" for w in train_workloads(task.problem, scale))
        summary = f"# {verb} {task.problem.name}: {task.problem.summary}"
        return f"{summary}\n{python_prototype(task.problem)}\n{workloads}\n"

    return write


class LaunchPrompt:
    """Prompts of one statement, the launch of the start kernel, to be answered with an edit of it.

    For policies that are too small to read a kernel.

    Args:
        device: A device name; the prompt says nothing of it.

    Attributes:
        space: The numbers that a launch may be given on it.
    """

    def __init__(self, device: str) -> None:
        self.space = space_of(device)

    def __call__(self, task: Task) -> str:
        """The prompt of a task.

        Raises:
            ValueError: The task starts from nothing, or from no Triton kernel.
        """
        if task.start_source is None or task.language != "triton":
            raise ValueError(
                f"task {task.id!r} has no launch to edit: expected one of triton2triton, or "
                "another prompt than 'launch'"
            )
        return self.of(task, task.start_source)

    def of(self, task: Task, source: str) -> str:
        """The same with another source to edit, such as one that was edited before."""
        return "# Edit\n" + "\n".join(launches(source)) + "\n"


PROMPTS: dict[str, Callable[[str], Prompt]] = {
    "full": full_prompt,
    "brief": brief_prompt,
    "launch": LaunchPrompt,
}
"""Ways to put a task to a policy, by name; each is made for a device."""


def converse(episode: Episode, prompt: Prompt) -> Conversation:
    """An episode as a chat.

    Args:
        episode: The task and the turns so far.
        prompt: How the task is put.

    Returns:
        The chat; a turn is the policy's reply and then the feedback on it.
    """
    messages = [Message(role="user", content=prompt(episode.task))]
    for turn in episode.turns:
        messages.append(Message(role="assistant", content=turn.text or turn.source))
        messages.append(Message(role="user", content=turn.feedback))
    return Conversation(episode, tuple(messages))
