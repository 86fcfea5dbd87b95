"""Prompts: the ways to describe a task to a policy."""

from __future__ import annotations

from collections.abc import Callable

from kernel_gym.devices import describe
from kernel_gym.episodes.chat import converse
from kernel_gym.episodes.episode import Prompt
from kernel_gym.episodes.graph_prompts import graph_prompt
from kernel_gym.episodes.launch_prompts import LaunchPrompt
from kernel_gym.tasks import Task, prompt, python_prototype, train_workloads
from kernel_gym.tasks.names import Mode

__all__ = [
    "PROMPTS",
    "LaunchPrompt",
    "Prompt",
    "brief_prompt",
    "converse",
    "full_prompt",
    "graph_prompt",
]


def full_prompt(device: str) -> Prompt:
    """Prompts as `KernelOpt-v0` shows them: device, operation, sources, workloads, rules, guide.

    Args:
        device: A device name. The prompt states its facts and has its guide.
    """

    def write(task: Task) -> str:
        described = describe(device)
        workloads = train_workloads(task.problem, described.scale)
        return prompt(
            task, described.facts, workloads, described.spec.arch, embedded=described.embedded
        )

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


PROMPTS: dict[str, Callable[[str], Prompt]] = {
    "full": full_prompt,
    "brief": brief_prompt,
    "graph": graph_prompt,
    "launch": LaunchPrompt,
}
"""The kinds of prompts by name; each is made for a device."""
