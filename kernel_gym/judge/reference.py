"""Expected values of imported tasks, from a reference worker that runs the suite's own code.

The worker is confined like a candidate's and is none: it stays in a session of its own. Where the
suite's code is plain PyTorch that takes fp64, the oracle is its fp64 result and the yardstick its
error in the task's dtype. Otherwise the oracle is the result of the given kernel, and the yardstick
its own noise: how far the result moves if every real input moves by one rounding.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from kernel_gym.devices.base import Call, InfraError
from kernel_gym.judge.expected import Expected
from kernel_gym.judge.metadata import check_metadata
from kernel_gym.judge.timing.baselines import BaselineRunner
from kernel_gym.tasks.problem import Value
from kernel_gym.tasks.recorded.problem import EXACT, RecordedProblem
from kernel_gym.tasks.sampling import make_inputs
from kernel_gym.tasks.task import Task
from kernel_gym.tasks.workload import Workload


def expect_of_worker(
    task: Task, workload: Workload, seed: int, baseline: BaselineRunner
) -> Expected:
    """Draws inputs and asks the reference worker for oracle and yardstick.

    Raises:
        InfraError: The suite's own code failed: the task is broken, not the candidate.
    """
    problem = task.problem
    assert isinstance(problem, RecordedProblem)
    inputs = make_inputs(problem, workload, seed)
    dims = dict(workload.dims)
    outputs = problem.outputs_at(dims)
    plain = answers(task, inputs, dims, baseline)
    if problem.is_exact(dims):
        oracle = answers(task, in_double(inputs), {**dims, EXACT: 1}, baseline)
        return Expected(inputs, oracle, plain, outputs)
    moved = answers(task, problem.perturbed(inputs, seed), dims, baseline)
    oracle = tuple(t.double() if t.dtype.is_floating_point else t for t in plain)
    return Expected(inputs, oracle, moved, outputs)


def answers(
    task: Task, inputs: Mapping[str, Value], dims: Mapping[str, int], baseline: BaselineRunner
) -> tuple[torch.Tensor, ...]:
    """Returns what the suite's own code answers.

    Raises:
        InfraError: It failed.
    """
    call = baseline.call(task, inputs, dims)
    if not isinstance(call, Call):
        baseline.close()
        raise InfraError(f"the reference of {task.id} failed: {call.message}")
    outputs = task.problem.outputs_at(dims)
    wrong = check_metadata(outputs, call)
    if wrong:
        raise InfraError(f"the reference of {task.id} is wrong: {wrong}")
    return tuple(output.tensor for output in call.outputs if output.tensor is not None)


def in_double(inputs: Mapping[str, Value]) -> dict[str, Value]:
    """Returns the inputs with floating-point tensors in fp64."""
    return {
        name: value.double()
        if isinstance(value, torch.Tensor) and value.dtype.is_floating_point
        else value
        for name, value in inputs.items()
    }
