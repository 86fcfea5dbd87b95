"""Prompts of tasks as rows of datasets, for trainers that read their prompts from files."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kernel_gym.episodes.conversation import full_prompt
from kernel_gym.exchange.files import Row
from kernel_gym.tasks import Task

SOURCE = "kernel-gym"
"""The name of the dataset in the rows of verl and SkyRL."""


def verl_row(index: int, task: Task, prompt: str) -> Row:
    """A row for verl: its reward function gets the task as ground truth, its tool as argument."""
    return {
        "data_source": SOURCE,
        "prompt": [{"role": "user", "content": prompt}],
        "ability": "gpu-kernel",
        "reward_model": {"style": "rule", "ground_truth": task.id},
        "extra_info": {
            "index": index,
            "task": task.id,
            "tools_kwargs": {"submit_kernel": {"create_kwargs": {"task": task.id}}},
        },
    }


def messages_row(index: int, task: Task, prompt: str) -> Row:
    """A chat with its first message, and the task."""
    return {"messages": [{"role": "user", "content": prompt}], "task": task.id}


def skyrl_row(index: int, task: Task, prompt: str) -> Row:
    """A row for SkyRL and the environment of :mod:`kernel_gym.envs.adapters.skyrl`."""
    return {
        "data_source": SOURCE,
        "prompt": [{"role": "user", "content": prompt}],
        "env_class": "kernel_gym",
        "task": task.id,
        "reward_spec": {"method": "rule", "ground_truth": task.id},
    }


MODULE = """{reference}

from kernel_gym.tasks import Scale, get_problem, make_inputs, train_workloads


class Model(torch.nn.Module):
    def forward(self, *inputs):
        outputs = {entry}(*inputs)
        return outputs[0] if len(outputs) == 1 else outputs


def get_inputs():
    problem = get_problem("{problem}")
    seed = int(torch.randint(2**31, ()))
    return list(make_inputs(problem, train_workloads(problem, Scale.FULL)[0], seed).values())


def get_init_inputs():
    return []
"""
"""A module in the form of KernelBench. Its inputs are those of the first train workload."""


def kernelbench_row(index: int, task: Task, prompt: str) -> Row:
    """A row with the columns of KernelBench: a module with `Model`, `get_inputs` and the like.

    The module draws its inputs with this package, in the distributions of the problem.
    """
    problem = task.problem
    code = MODULE.format(
        reference=task.reference_source.rstrip(), entry=task.entry, problem=problem.name
    )
    return {
        "code": code,
        "level": problem.level,
        "name": problem.name,
        "problem_id": index + 1,
        "task": task.id,
    }


PROMPT_FORMATS: dict[str, Callable[[int, Task, str], Row]] = {
    "verl": verl_row,
    "messages": messages_row,
    "skyrl": skyrl_row,
    "kernelbench": kernelbench_row,
}
"""The formats by name."""


def prompt_rows(tasks: Iterable[Task], kind: str, device: str) -> list[Row]:
    """The rows of tasks.

    Args:
        tasks: The tasks.
        kind: A key of :data:`PROMPT_FORMATS`.
        device: The device that prompts describe.
    """
    write, row = full_prompt(device), PROMPT_FORMATS[kind]
    return [row(index, task, write(task)) for index, task in enumerate(tasks)]
