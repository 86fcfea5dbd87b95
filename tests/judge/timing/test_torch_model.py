"""The modelled time of a PyTorch baseline, against sums by hand."""

import pytest
import torch

from kernel_gym.hardware import MI300X, library_share
from kernel_gym.judge.timing.torch_model import reference_seconds


class _Reference:
    """Stands for a problem: only its reference is asked for."""

    def __init__(self, function):
        self.reference = function


def _seconds(function, **inputs):
    return reference_seconds(_Reference(function), inputs, MI300X)


def test_one_pointwise_operator_costs_a_launch_and_its_bytes():
    x = torch.zeros(1 << 20)
    expected = (
        MI300X.shortest_kernel_seconds + 2 * x.nbytes / MI300X.memory_bandwidth / MI300X.achievable
    )
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
    rate = MI300X.matrix_rate[torch.float16] * library_share(2 * n**3, matrix=True)
    expected = MI300X.shortest_kernel_seconds + 2 * n**3 / rate
    assert _seconds(lambda a: (a @ a,), a=a) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("side", "dtype", "measured"),  # TFLOP/s of hipBLASLt on an MI300X
    [
        (4096, torch.bfloat16, 657.1),
        (8192, torch.bfloat16, 836.8),
        (4096, torch.float16, 537.9),
        (8192, torch.float16, 783.5),
        (4096, torch.float8_e4m3fnuz, 1188.9),
        (8192, torch.float8_e4m3fnuz, 1597.3),
        (4096, torch.float32, 146.0),
        (8192, torch.float32, 156.2),
    ],
)
def test_products_meet_the_rates_of_the_library(side, dtype, measured):
    flops = 2 * side**3
    rate = flops / MI300X.operator_seconds(0, flops, dtype) / 1e12
    assert rate == pytest.approx(measured, rel=0.16)


def test_small_products_are_further_from_the_peak():
    shares = [library_share(2 * side**3, matrix=True) for side in (256, 1024, 4096, 8192)]
    assert shares == sorted(shares)
    assert shares[0] < 0.1


def test_attention_and_rms_norm_are_one_operator():
    q = torch.zeros(1, 4, 256, 64, dtype=torch.float16)
    flops = 2 * 2 * 4 * 256 * 256 * 64

    def attend(q, causal):
        return (torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=causal),)

    whole = MI300X.operator_seconds(4 * q.nbytes, flops, torch.float16)
    assert _seconds(lambda q: attend(q, False), q=q) == pytest.approx(whole)
    half = MI300X.operator_seconds(4 * q.nbytes, flops // 2, torch.float16)
    assert _seconds(lambda q: attend(q, True), q=q) == pytest.approx(half)
    x, w = torch.zeros(512, 1024), torch.zeros(1024)
    expected = MI300X.operator_seconds(2 * x.nbytes + w.nbytes, 0, torch.float32)
    seconds = _seconds(lambda x, w: (torch.nn.functional.rms_norm(x, (1024,), w),), x=x, w=w)
    assert seconds == pytest.approx(expected)


def test_operators_after_a_fused_one_are_charged_again():
    x = torch.zeros(512, 1024)
    norm = _seconds(lambda x: (torch.nn.functional.rms_norm(x, (1024,)),), x=x)
    both = _seconds(lambda x: (torch.nn.functional.rms_norm(x, (1024,)).exp(),), x=x)
    assert both == pytest.approx(norm + _seconds(lambda x: (x.exp(),), x=x))
