"""FastKernels' rule, on values, and on modules that tamper."""

from __future__ import annotations

import sys
import threading
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from kernel_gym.imports.upstream import fastkernels_rule as rule

VALUES = torch.linspace(1, 2, 1000)


def changed(values, count, by):
    other = values.clone()
    other[:count] += by
    return other


@pytest.mark.parametrize(
    ("answer", "expected", "message"),
    [
        (changed(VALUES, 10, 9.0), VALUES, ""),  # 1 % may be anything
        (changed(VALUES, 11, 9.0), VALUES, "0.9890 within atol 1e-05, rtol 0.001"),
        (VALUES + 5e-4, VALUES, ""),
        (VALUES + 3e-3, VALUES, "INCORRECT_NUMERICAL"),
        ((VALUES + 1e-2).half(), VALUES.half(), ""),
        ((VALUES * 1.05).bfloat16(), VALUES.bfloat16(), "atol 0.01, rtol 0.01"),
        (VALUES * 1.1, VALUES.to(torch.float8_e4m3fn).float(), "INCORRECT_NUMERICAL"),
        ((VALUES * 1.1).to(torch.float8_e4m3fn), VALUES.to(torch.float8_e4m3fn), ""),
        (changed(VALUES, 1, torch.inf), VALUES, "NaN or infinity"),
        (torch.zeros(4), torch.full((4,), 1e-6), "zeros alone"),
        (VALUES[:9], VALUES, "INCORRECT_SHAPE: [9], expected [1000]"),
        (VALUES.half(), VALUES, "INCORRECT_DTYPE"),
        ([VALUES], (VALUES, VALUES), "1 tensors, expected 2"),
        ({"x": VALUES}, {"x": [VALUES]}, ""),
        ([VALUES, torch.zeros(2)], [VALUES, torch.zeros(2)], ""),
    ],
)
def test_values_are_compared_as_the_suite_does(answer, expected, message):
    if not message:
        rule.compare(answer, expected, same_types=True)
        return
    with pytest.raises(rule.RefusedByRule) as caught:
        rule.compare(answer, expected, same_types=True)
    assert message in str(caught.value)


def test_a_call_whose_answer_is_zero_does_not_count():
    with pytest.raises(rule.SkippedCall, match="zeros alone"):
        rule.compare(VALUES, torch.zeros(4), same_types=True)


HELD = threading.Event()


class Twice(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.full((width,), float("nan")))

    def forward(self, x):
        return 2 * x * self.weight


class Other(Twice):
    def forward(self, x):
        return x * self.weight + 1e-3


class Reader(Twice):
    def forward(self, x):
        return super().forward(x).as_subclass(nn.Parameter)


class Patient(Twice):
    def forward(self, x):
        threading.Thread(target=HELD.wait).start()
        return super().forward(x)


class Meddler(Twice):
    def forward(self, x):
        rule._close = lambda answer, expected: None
        return x


class Broken(Twice):
    def forward(self, x):
        raise ValueError("no such shape")


@pytest.mark.parametrize(
    ("candidate", "message"),
    [
        (Twice, ""),
        (Other, "INCORRECT_NUMERICAL"),
        (Reader, "REWARD_HACK: an output is no plain tensor"),
        (Patient, "REWARD_HACK: it started a thread"),
        (Meddler, "REWARD_HACK: it replaced _close"),
        (Broken, "RUNTIME_ERROR: ValueError: no such shape"),
    ],
)
def test_a_module_is_played_as_the_suite_does(monkeypatch, candidate, message):
    HELD.clear()
    monkeypatch.setattr(rule, "DEVICE", "cpu")
    monkeypatch.setattr(rule, "_close", rule._close)
    monkeypatch.setitem(sys.modules, rule.CANDIDATE, SimpleNamespace(ModelNew=candidate))
    call = SimpleNamespace(
        Model=Twice,
        make_init=lambda: {"width": 8},
        make_inputs=lambda: {"x": torch.randn(4, 8).half()},
    )
    if not message:
        rule._case(call, rule._functions())
        return
    with pytest.raises(rule.RefusedByRule) as caught:
        rule._case(call, rule._functions())
    HELD.set()
    assert message in str(caught.value)
