"""Warms up lazily loaded libraries before an evaluation takes the GPU lock.

The first call of a PyTorch operator loads its kernels, sometimes a whole library. That takes tenths
of a second, and longer while other processes create GPU contexts. Confidence intervals need scipy.
Without a warm-up, other evaluations would wait for this under the lock.
"""

from __future__ import annotations

import logging

from kernel_gym.judge.attempt import Attempt
from kernel_gym.judge.correctness import same_twice, share_right
from kernel_gym.judge.expected import Expected, answer, compare
from kernel_gym.judge.protocol import TIMING
from kernel_gym.judge.timing.log_ratios import interval
from kernel_gym.tasks.problem import Problem, Scale
from kernel_gym.tasks.sampling import make_inputs, train_workloads

log = logging.getLogger(__name__)

_warm: set[tuple[str, str]] = set()
"""Task and device, for all that this process has warmed up."""


def warm_up(attempt: Attempt) -> None:
    """Calls the operators that judge a task, and a PyTorch baseline, on a small workload.

    This happens once for a task in a process. If an operator refuses such a small workload, that is
    logged, and the operator is loaded at its first real call.

    Raises:
        InfraError: The baseline does not build, or the device is lost.
    """
    task, device = attempt.task, attempt.device
    where = device.description.torch_device
    if (task.id, str(where)) in _warm:
        return
    _warm.add((task.id, str(where)))
    interval([0.0] * TIMING.min_pairs)  # loads scipy
    workload = train_workloads(task.problem, Scale.SIM)[0]
    inputs = make_inputs(task.problem, workload, 0, where)
    if task.baseline_source is None:  # a failure here happens again when the baseline is timed
        attempt.baseline.call(task, inputs, workload.dims)
    try:
        _judge_once(task.problem, answer(task.problem, inputs, where))
        device.synchronize()
    except RuntimeError as error:  # an operator refuses the small workload
        log.warning("%s was not warmed up: %s", task.id, error)


def _judge_once(problem: Problem, expected: Expected) -> None:
    compare(problem, expected, expected.reference)
    for reference, oracle in zip(expected.reference, expected.oracle, strict=True):
        same_twice(reference, reference.clone(), oracle, reference)
    share_right(expected.reference, expected.oracle)
