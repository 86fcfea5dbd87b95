"""The modelled time of a PyTorch baseline, against sums by hand."""

import pytest
import torch

from kernel_gym.hardware import MI300X
from kernel_gym.judge.timing.torch_model import reference_seconds


class _Reference:
    """Stands for a problem: only its reference is asked for."""

    def __init__(self, function):
        self.reference = function


def _seconds(function, **inputs):
    return reference_seconds(_Reference(function), inputs, MI300X)


def test_one_pointwise_operator_costs_a_launch_and_its_bytes():
    x = torch.zeros(1 << 20)
    expected = MI300X.launch_seconds + 2 * x.nbytes / MI300X.memory_bandwidth / MI300X.achievable
    assert _seconds(lambda x: (torch.exp(x),), x=x) == pytest.approx(expected)


def test_views_are_free_and_operators_add_up():
    x = torch.zeros(64, 64)
    one = _seconds(lambda x: (x.exp(),), x=x)
    assert _seconds(lambda x: (x.t().view(-1) if False else x.t().exp(),), x=x) == pytest.approx(
        one
    )
    assert _seconds(lambda x: (x.exp().exp(),), x=x) == pytest.approx(2 * one)


def test_a_large_product_is_bound_by_its_flops():
    n = 4096
    a = torch.empty(n, n, dtype=torch.float16)
    rate = MI300X.matrix_rate[torch.float16] * MI300X.achievable_rate
    expected = MI300X.launch_seconds + 2 * n**3 / rate
    assert _seconds(lambda a: (a @ a,), a=a) == pytest.approx(expected)
