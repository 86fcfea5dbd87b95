"""Trials of kernels: an autotuner is not charged, and nothing that it ran stays in memory."""

from __future__ import annotations

from contextlib import closing

import pytest
import torch

from kernel_gym.devices.base import Audit, Call
from kernel_gym.devices.sim.planned_session import PlannedSession
from kernel_gym.devices.sim.session import SimOptions
from kernel_gym.tasks import get_task

HEAD = """
import torch, triton
import triton.language as tl

@triton.jit
def doubled(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)

def double(x, out):
    doubled[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
"""
TUNED = (
    HEAD
    + """
configs = [triton.Config({"BLOCK": block}) for block in (64, 256)]
best = triton.autotune(configs, key=["n"])(doubled)

def softmax(x):
    out = torch.empty_like(x)
    best[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
    return out
"""
)
WORKS_IN_A_TRIAL = (
    HEAD
    + """
def softmax(x):
    out = torch.empty_like(x)
    triton.testing.do_bench(lambda: double(x, out))
    {after}
    return out
"""
)


@pytest.fixture
def call():
    """Calls a source on tensors of several sizes."""
    session = PlannedSession(get_task("triton2triton/softmax"), SimOptions(seed=3))
    with closing(session):

        def run(source, *sizes):
            failed = session.load(source)
            assert failed is None, failed
            calls = []
            for size in sizes:
                x = torch.full((8, size), 3.0, dtype=torch.float16)
                dims = {"rows": 8, "cols": size}
                calls.append(session.call({"x": x}, dims, audit=Audit.DRAWN))
            return calls

        yield run


def test_an_autotuner_with_a_key_is_charged_for_its_choice_only(call):
    first, again, larger, larger_again = call(TUNED, 64, 64, 4096, 4096)
    assert all(isinstance(one, Call) for one in (first, again, larger, larger_again))
    assert not any(one.retuned for one in (first, larger))
    assert [one.launches for one in (first, again, larger, larger_again)] == [1] * 4
    assert first.seconds == pytest.approx(again.seconds, rel=0.02)
    assert larger.seconds == pytest.approx(larger_again.seconds, rel=0.02)
    assert (larger.outputs[0].tensor == 6).all()


def test_an_answer_that_was_written_in_a_trial_is_lost(call):
    (result,) = call(WORKS_IN_A_TRIAL.format(after=""), 64)
    assert isinstance(result, Call)
    assert result.outputs[0].tensor.isnan().all()
    assert (result.launches, result.seconds) == (0, 0.0)


def test_work_after_a_trial_counts(call):
    (result,) = call(WORKS_IN_A_TRIAL.format(after="double(x, out)"), 64)
    assert (result.outputs[0].tensor == 6).all()
    assert (result.launches, result.seconds > 0) == (1, True)
