"""What is loaded when it is first called, loaded before an evaluation has the GPU.

The first call of one of PyTorch's operators loads its kernels, some a whole library: tenths of a
second, and several times as long while other processes make their GPU contexts. Intervals need
scipy. Evaluations would wait for it in turn.
"""

from __future__ import annotations

import logging

import torch

from kernel_gym.judge.attempt import Attempt
from kernel_gym.judge.correctness import same_twice, share_right
from kernel_gym.judge.expected import Expected, answer, compare
from kernel_gym.judge.protocol import MIN_PAIRS
from kernel_gym.judge.timing.paired import interval
from kernel_gym.tasks.problem import Problem, Scale
from kernel_gym.tasks.sampling import make_inputs, train_workloads

log = logging.getLogger(__name__)

_used: set[tuple[str, str]] = set()
"""Tasks by device, of this process."""


def use_once(attempt: Attempt) -> None:
    """Calls what judges a task, and a baseline of PyTorch's operators, on a small workload.

    Once for a task and a process. What an operator refuses to do with so small a workload is logged
    and left for a true one.

    Raises:
        InfraError: the baseline does not build, or the device is lost.
    """
    task, where = attempt.task, attempt.device.where
    if (task.id, str(where)) in _used:
        return
    _used.add((task.id, str(where)))
    interval([0.0] * MIN_PAIRS)  # loads scipy
    workload = train_workloads(task.problem, Scale.SIM)[0]
    inputs = make_inputs(task.problem, workload, 0, where)
    if task.baseline_source is None:  # what fails here fails again when it is timed
        attempt.baseline.call(task, inputs, workload.dims)
    try:
        _judge_once(task.problem, answer(task.problem, inputs, where))
    except RuntimeError as error:  # PyTorch's word for whatever an operator refuses
        log.warning("%s was not warmed up: %s", task.id, error)


def _judge_once(problem: Problem, expected: Expected) -> None:
    compare(problem, expected, expected.reference)
    for reference, oracle in zip(expected.reference, expected.oracle, strict=True):
        same_twice(reference, reference.clone(), oracle)
    share_right(expected.reference, expected.oracle)
    torch.cuda.synchronize()
