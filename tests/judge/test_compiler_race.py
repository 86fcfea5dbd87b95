"""Kernels in which Triton's compiler leaves out a wait: masked if they are right, blamed if not."""

from __future__ import annotations

import pytest

from kernel_gym.advice import advice
from kernel_gym.evaluator import Evaluator
from kernel_gym.feedback import feedback
from kernel_gym.records import COMPILER_RACE, Outcome
from kernel_gym.rewards import get_reward
from kernel_gym.tasks import get_task

TASK = get_task("triton2triton/linear_scan")
SCAN = """
import torch, triton
import triton.language as tl

@triton.jit
def composed(decay, value, later_decay, later_value):
    return decay * later_decay, later_decay * value + later_value

@triton.jit
def parts(a, x, start, h, a_batch, a_time, x_batch, x_time, start_batch, time, channels,
          WIDE: tl.constexpr, STEPS: tl.constexpr):
    batch = tl.program_id(0).to(tl.int64)
    channel = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    state = tl.load(start + batch * start_batch + channel, mask=channel < channels, other=0.0)
    state = state.to(tl.float32)
    for begin in range(0, time, STEPS):
        step = begin + tl.arange(0, STEPS)[:, None]
        inside = (step < time) & (channel < channels)[None, :]
        at = channel[None, :]
        decay = tl.load(a + batch * a_batch + step * a_time + at, mask=inside, other=1.0)
        value = tl.load(x + batch * x_batch + step * x_time + at, mask=inside, other=0.0)
        pair = (decay.to(tl.float32), value.to(tl.float32))
        decays, values = tl.associative_scan(pair, 0, composed)
        states = decays * state[None, :] + values
        out = h + (batch * time + step) * channels + at
        tl.store(out, (states * FACTOR).to(tl.float16), mask=inside)
        last = tl.arange(0, STEPS)[:, None] == STEPS - 1
        state = tl.sum(tl.where(last, states, 0.0), axis=0)

def linear_scan(a, x, start):
    batch, time, channels = x.shape
    h = torch.empty_like(x, memory_format=torch.contiguous_format)
    grid = (batch, triton.cdiv(channels, 32))
    parts[grid](a, x, start, h, *a.stride()[:2], *x.stride()[:2], start.stride(0), time, channels,
                WIDE=32, STEPS=32, num_warps=4)
    return h
"""


@pytest.fixture(scope="module")
def evaluator():
    with Evaluator(device="sim:gfx942", seed=0) as opened:
        yield opened


def test_a_right_kernel_is_masked_with_a_hint(evaluator):
    evaluation = evaluator.evaluate(TASK, SCAN.replace("FACTOR", "1.0"))
    assert evaluation.outcome is Outcome.INFRA
    assert evaluation.labels == (COMPILER_RACE,)
    assert "the compiler has made a race" in evaluation.message
    assert get_reward("kernel-opt")(evaluation).masked
    assert "You are not to blame" in feedback(TASK, evaluation)
    assert advice(TASK, evaluation) == []


def test_a_wrong_kernel_is_wrong(evaluator):
    evaluation = evaluator.evaluate(TASK, SCAN.replace("FACTOR", "1.1"))
    assert evaluation.outcome is Outcome.WRONG_VALUES
