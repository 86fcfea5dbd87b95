"""No workload beyond the tiny sizes is passed by an answer of zeros, whatever was drawn.

Contrasts do not count: where several tensors are small, a product of them underflows."""

from __future__ import annotations

import pytest
import torch

from kernel_gym.judge.expected import answer, compare
from kernel_gym.tasks import (
    Scale,
    adversarial_workloads,
    get_problem,
    make_inputs,
    problem_names,
    train_workloads,
)
from kernel_gym.tasks.distributions import draw_mask

MAX_ELEMENTS = 300_000
ALL_ZERO = {
    "ball_query": "one point of one neighbour has index 0",
}
"""Problems whose right answer is zero in a workload of extreme sizes, with the reason."""


@pytest.mark.parametrize("name", problem_names())
def test_zeros_are_refused(name):
    problem = get_problem(name)
    drawn = adversarial_workloads(problem, Scale.SIM, "triton", 3)
    workloads = train_workloads(problem, Scale.SIM) + [
        workload
        for workload in drawn
        if workload.dims not in problem.adversarial and not workload.magnitudes
    ]
    hollow = []
    for workload in workloads:
        if problem.elements(workload.dims) > MAX_ELEMENTS:
            continue
        expected = answer(problem, make_inputs(problem, workload, 5))
        zeros = tuple(
            torch.zeros_like(value, dtype=output.dtype)
            for output, value in zip(problem.outputs, expected.reference, strict=True)
        )
        if compare(problem, expected, zeros).passed:
            hollow.append(f"{workload.dims} {workload.distribution}")
    assert bool(hollow) == (name in ALL_ZERO), hollow


def test_a_mask_of_one_row_hides_nothing():
    generator = torch.Generator().manual_seed(0)
    masks = [draw_mask((1,), 0.9, generator) for _ in range(50)]
    assert not torch.stack(masks).any()


def test_a_mask_hides_its_share():
    mask = draw_mask((1000, 10), 0.2, torch.Generator().manual_seed(1))
    assert mask.float().mean().item() == pytest.approx(0.2, abs=0.02)
