"""Prompts for policies that are trained from nothing: the steps of a generated graph."""

from __future__ import annotations

from functools import partial

from kernel_gym.devices import describe
from kernel_gym.episodes.episode import Prompt
from kernel_gym.tasks import Task, train_workloads
from kernel_gym.tasks.generated.kernels import compact_text
from kernel_gym.tasks.generated.problem import generated_problem
from kernel_gym.tasks.names import PREFIX
from kernel_gym.tasks.problem import Scale


def graph_prompt(device: str) -> Prompt:
    """Prompts with the dtype, the sizes of the train workloads, and a line for each step.

    Args:
        device: A device name. The workloads have the sizes that it is timed with.
    """
    return partial(_write, describe(device).scale)


def _write(scale: Scale, task: Task) -> str:
    problem = task.problem
    if not problem.name.startswith(PREFIX):
        raise ValueError(
            f"task {task.id!r} has no graph: expected a generated one, or another prompt than "
            "'graph'"
        )
    sizes = [list(workload.dims.values()) for workload in train_workloads(problem, scale)]
    shown = ", ".join(" ".join(map(str, size)) for size in sizes)
    graph = generated_problem(problem.name).graph
    return f"{graph.dtype} {shown}\n{compact_text(graph)}\n"
