"""What PyTorch loads when an operator is first called, loaded before an evaluation has the GPU.

An operator's first call loads its kernels, some a whole library: tenths of a second, and several
times as long while other processes make their GPU contexts. Evaluations would wait for it in turn.
"""

from __future__ import annotations

import contextlib

import torch

from kernel_gym.judge.attempt import Attempt
from kernel_gym.judge.expected import compare, expect
from kernel_gym.judge.values import same_twice, share_right
from kernel_gym.tasks.problem import Scale
from kernel_gym.tasks.sampling import train_workloads

_used: set[tuple[str, str]] = set()
"""Tasks by device, of this process."""


def use_once(attempt: Attempt) -> None:
    """Calls what judges a task, and a baseline of PyTorch's operators, on a small workload.

    Once for a task and a process. What fails with so small a workload is left for a true one.
    """
    task, where = attempt.task, attempt.device.where
    if (task.id, str(where)) in _used:
        return
    _used.add((task.id, str(where)))
    workload = train_workloads(task.problem, Scale.SIM)[0]
    with contextlib.suppress(RuntimeError):  # PyTorch's word for whatever an operator refuses
        expected = expect(task.problem, workload, 0, where)
        compare(task.problem, expected, expected.reference)
        for reference, oracle in zip(expected.reference, expected.oracle, strict=True):
            same_twice(reference, reference.clone(), oracle)
        share_right(expected.reference, expected.oracle)
        if task.baseline_source is None:
            attempt.baseline.session(task).call(expected.inputs, workload.dims)
        torch.cuda.synchronize()
