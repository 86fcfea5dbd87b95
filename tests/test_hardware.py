"""Roofline times by the data sheets."""

from __future__ import annotations

import pytest
import torch

from kernel_gym.hardware import MI300X
from kernel_gym.tasks import Scale, get_problem


def test_the_fastest_type_bounds_the_rate():
    flops = 10**15
    halves = MI300X.roofline_seconds(0, flops, torch.bfloat16)
    assert halves == pytest.approx(flops / 1307.4e12)
    assert MI300X.roofline_seconds(0, flops, torch.float32, torch.bfloat16) == halves
    assert MI300X.roofline_seconds(0, flops, torch.float32) == pytest.approx(flops / 163.4e12)


@pytest.mark.parametrize(
    ("name", "rate"),
    [
        ("fused_linear_cross_entropy", 1307.4e12),  # bfloat16 matrices, float32 results
        ("int8_matmul", 2614.9e12),  # int8 matrices, float16 results
        ("matmul", 1307.4e12),
    ],
)
def test_a_product_is_bounded_by_the_type_of_its_matrices(name, rate):
    problem = get_problem(name)
    for dims in problem.train[Scale.FULL]:
        flops = problem.flops(dims)
        seconds = MI300X.roofline_seconds(0, flops, *problem.dtypes_at(dims))
        assert seconds == pytest.approx(flops / rate)
