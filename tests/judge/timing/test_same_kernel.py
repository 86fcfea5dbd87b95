"""A kernel is as fast as itself on the simulator, also where its work depends on values."""

from __future__ import annotations

import pytest

from kernel_gym.evaluator import Evaluator
from kernel_gym.records import Outcome
from kernel_gym.tasks import get_task

TASKS = (
    "hip2hip/cross_entropy_backward",  # rows that are ignored
    "hip2hip/mrope",  # workgroups that read unlike numbers of lines
    "hip2hip/nms_select",  # a search that ends early
    "triton2triton/bidirectional_attention",  # lengths
    "triton2triton/embedding_bag",  # lengths, and unlike workgroups
)
MAX_DIFFERENCE = 0.05
"""Addresses differ, and with them the lines that neighbours share."""


@pytest.mark.parametrize("task_id", TASKS)
def test_a_start_kernel_is_as_fast_as_itself(task_id):
    task = get_task(task_id)
    with Evaluator(device="sim:gfx942", seed=7) as evaluator:
        evaluation = evaluator.evaluate(task, task.start_source)
    assert evaluation.outcome is Outcome.PASSED, evaluation.message
    speedups = [w.speedup for w in evaluation.workloads if w.speedup is not None]
    assert len(speedups) > 7
    assert speedups == pytest.approx([1.0] * len(speedups), rel=MAX_DIFFERENCE)
