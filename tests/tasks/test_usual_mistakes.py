"""Formulas that are right on usual values and wrong on special ones are refused."""

from __future__ import annotations

import pytest
import torch

from kernel_gym.judge.expected import answer, compare
from kernel_gym.tasks import Scale, adversarial_workloads, get_problem, make_inputs
from kernel_gym.tasks.special_values import is_special


def _one_pass(x: torch.Tensor, eps: float) -> torch.Tensor:
    """Normalises the last axis by the mean of squares less the square of the mean, in float32."""
    mean = x.float().mean(-1, keepdim=True)
    variance = x.float().square().mean(-1, keepdim=True) - mean * mean
    return (x.float() - mean) * torch.rsqrt(variance.clamp(min=0) + eps)


def _group_norm(x, weight, bias, num_groups, eps):
    flat = _one_pass(x.reshape(len(x), num_groups, -1), eps).view(x.shape)
    return ((flat * weight.float()[:, None] + bias.float()[:, None]).half(),)


def _add_layer_norm(x, residual, weight, bias, eps):
    total = x.float() + residual.float()
    return ((_one_pass(total, eps) * weight.float() + bias.float()).half(), total.half())


def _adaln_modulation(x, shift, scale, eps):
    moved = _one_pass(x, eps) * (1 + scale.float()[:, None]) + shift.float()[:, None]
    return (moved.half(),)


def _swiglu_backward(grad, x):
    """The logistic function as exp(g) / (1 + exp(g)), which is NaN from 89 on."""
    gate, up = x.float().chunk(2, dim=1)
    share = torch.exp(gate) / (1 + torch.exp(gate))
    slope = share + gate * share * (1 - share)
    return (torch.cat([grad.float() * up * slope, grad.float() * gate * share], 1).half(),)


def _histogram(codes, num_bins):
    """Counts codes of 22 bits."""
    codes = (codes << 10) >> 10
    at = codes.clamp(-1, num_bins).long() + 1
    out = torch.zeros((len(codes), num_bins + 2), dtype=torch.int32)
    return (out.scatter_add(1, at, torch.ones_like(codes))[:, 1:-1],)


def _matmul_fp32(a, b):
    """Multiplies halves whose sums are exact to 22 bits."""
    high, other = a.half().float(), b.half().float()
    low, rest = (a - high).half().float(), (b - other).half().float()
    return (high @ other + high @ rest + low @ other,)


MISTAKES = {
    "group_norm": _group_norm,
    "add_layer_norm": _add_layer_norm,
    "adaln_modulation": _adaln_modulation,
    "swiglu_backward": _swiglu_backward,
    "histogram": _histogram,
    "matmul_fp32": _matmul_fp32,
}


@pytest.mark.parametrize("language", ["triton", "hip"])
@pytest.mark.parametrize("name", MISTAKES)
def test_a_usual_mistake_is_refused(name, language):
    problem = get_problem(name)
    refused = set()
    for workload in adversarial_workloads(problem, Scale.SIM, language):
        expected = answer(problem, make_inputs(problem, workload, 5))
        if not compare(problem, expected, MISTAKES[name](**expected.inputs)).passed:
            refused.add(is_special(workload.distribution))
    assert True in refused
