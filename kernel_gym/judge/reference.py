"""Expected values of imported tasks, from a reference worker that runs the suite's own code.

The reference worker is confined like a candidate's worker, but has its own session. If the suite's
code is plain PyTorch that accepts fp64, the oracle is its fp64 result, and the yardstick is its
error in the task's dtype. Otherwise the oracle is the result of the given kernel, and the yardstick
is the noise of this kernel: how much the result changes if every real input changes by one
rounding. Inputs of one byte have coarse roundings, which no calculation reproduces, so their share
of the noise is scaled down to a rounding of fp16.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from kernel_gym.devices.base import BrokenTaskError, Call
from kernel_gym.judge.expected import Expected
from kernel_gym.judge.metadata import check_metadata
from kernel_gym.judge.timing.baselines import BaselineRunner
from kernel_gym.tasks.problem import Value
from kernel_gym.tasks.sampling import CPU, make_inputs
from kernel_gym.tasks.task import Task
from kernel_gym.tasks.workload import Workload


def expect_of_worker(
    task: Task,
    workload: Workload,
    seed: int,
    baseline: BaselineRunner,
    where: torch.device = CPU,
    samples: int = 0,
) -> Expected:
    """Draws inputs and asks the reference worker for oracle and yardstick.

    Args:
        task: The task.
        workload: Its sizes.
        seed: The seed of the data.
        baseline: Runs the suite's own code.
        where: The torch device on which inputs are drawn.
        samples: The seed of the workgroups that a timing model samples, the candidate's.

    Raises:
        InfraError: The suite's own code failed: the task is broken, not the candidate.
    """
    inputs = make_inputs(task.problem, workload, seed, where)
    return answer_of_worker(task, workload, inputs, baseline, seed, samples)


def answer_of_worker(
    task: Task,
    workload: Workload,
    inputs: Mapping[str, Value],
    baseline: BaselineRunner,
    seed: int = 0,
    samples: int = 0,
) -> Expected:
    """Asks the reference worker for oracle and yardstick of given inputs.

    Args:
        task: The task.
        workload: Its sizes.
        inputs: The inputs.
        baseline: Runs the suite's own code.
        seed: Decides in which directions values move for the yardstick.
        samples: The seed of the workgroups that a timing model samples, the candidate's.

    Raises:
        InfraError: The suite's own code failed: the task is broken, not the candidate.
    """
    reference = task.problem.worker_reference
    assert reference is not None
    dims = dict(workload.dims)
    outputs = task.problem.outputs_at(dims)
    plain = answers(task, inputs, dims, baseline)
    exact = reference.exact_dims(dims)
    if exact is not None:
        oracle = answers(task, in_double(inputs), exact, baseline)
        return Expected(inputs, oracle, plain, outputs)
    # The first call has tuned the kernels. Moved values do not change how much work a call has.
    moving = reference.perturbed(inputs, seed)
    moved, call = called_answers(task, moving, dims, baseline, samples)
    if coarse := _largest_rounding(inputs):
        far = answers(task, reference.perturbed(inputs, seed, coarse=True), dims, baseline)
        scale = torch.finfo(torch.float16).eps / coarse
        moved = tuple(map(_plus_scaled, moved, plain, far, [scale] * len(far)))
    oracle = tuple(t.double() if t.dtype.is_floating_point else t for t in plain)
    own = None if task.baseline_source is None else call.seconds
    return Expected(inputs, oracle, moved, outputs, own, call.operator_seconds)


def _largest_rounding(inputs: Mapping[str, Value]) -> float:
    """Returns the relative size of the coarsest rounding of inputs of one byte, or 0."""
    dtypes = {value.dtype for value in inputs.values() if isinstance(value, torch.Tensor)}
    small = [t for t in dtypes if t.is_floating_point and t.itemsize == 1]
    return max((torch.finfo(t).eps for t in small), default=0.0)


def _plus_scaled(
    moved: torch.Tensor, plain: torch.Tensor, far: torch.Tensor, scale: float
) -> torch.Tensor:
    """Adds a scaled change of the result. Results of integers keep the change of the others."""
    if not moved.dtype.is_floating_point:
        return moved
    return moved.double() + scale * (far.double() - plain.double())


def answers(
    task: Task, inputs: Mapping[str, Value], dims: Mapping[str, int], baseline: BaselineRunner
) -> tuple[torch.Tensor, ...]:
    """Returns what the suite's own code answers.

    Raises:
        InfraError: It failed.
    """
    return called_answers(task, inputs, dims, baseline)[0]


def called_answers(
    task: Task,
    inputs: Mapping[str, Value],
    dims: Mapping[str, int],
    baseline: BaselineRunner,
    samples: int = 0,
) -> tuple[tuple[torch.Tensor, ...], Call]:
    """Returns what the suite's own code answers, and the record of the call.

    Raises:
        InfraError: It failed.
    """
    call = baseline.call(task, inputs, dims, samples)
    if not isinstance(call, Call):
        baseline.close()
        raise BrokenTaskError(f"the reference of {task.id} failed: {call.message}")
    outputs = task.problem.outputs_at(dims)
    wrong = check_metadata(outputs, call)
    if wrong:
        raise BrokenTaskError(f"the reference of {task.id} is wrong: {wrong}")
    tensors = tuple(output.tensor for output in call.outputs if output.tensor is not None)
    return tensors, call


def in_double(inputs: Mapping[str, Value]) -> dict[str, Value]:
    """Returns the inputs with floating-point tensors in fp64."""
    return {
        name: value.double()
        if isinstance(value, torch.Tensor) and value.dtype.is_floating_point
        else value
        for name, value in inputs.items()
    }
