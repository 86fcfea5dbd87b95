"""Kernels that Triton compiles wrongly: masked if they are right otherwise, blamed if not."""

from __future__ import annotations

import pytest
import triton

from kernel_gym.advice import advice
from kernel_gym.evaluator import Evaluator
from kernel_gym.feedback import feedback
from kernel_gym.records import MISCOMPILED, Outcome
from kernel_gym.rewards import get_reward
from kernel_gym.tasks import get_task
from kernel_gym.triton_versions import numbers

TASK = get_task("triton2triton/row_sum")
FOLDS = (3, 7) <= numbers(triton.__version__) < (3, 9)
"""Whether this version takes a comparison behind a bounded loop for a constant."""
ROW_SUM = """
import torch, triton
import triton.language as tl

@triton.jit
def row_sum_kernel(x_ptr, out_ptr, x_stride, cols, BLOCK: tl.constexpr, CAP: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    done = 0
    for step in range(0, tl.minimum(tl.cdiv(cols, BLOCK), CAP)):
        at = step * BLOCK + lane
        total += tl.load(x_ptr + row * x_stride + at, mask=at < cols, other=0.0).to(tl.float32)
        done += 1
    result = tl.sum(total, axis=0)
    if done < CAP:
        result = result * FACTOR
    else:
        for start in range(CAP * BLOCK, cols, BLOCK):
            at = start + lane
            part = tl.load(x_ptr + row * x_stride + at, mask=at < cols, other=0.0)
            result += tl.sum(part.to(tl.float32), axis=0)
    tl.store(out_ptr + row, result.to(tl.bfloat16))

def row_sum(x):
    rows, cols = x.shape
    out = torch.empty((rows,), dtype=x.dtype, device=x.device)
    row_sum_kernel[(rows,)](x, out, x.stride(0), cols, BLOCK=256, CAP=8)
    return out
"""
DETECTS = """
@triton.jit
def probe(out_ptr, n, CAP: tl.constexpr):
    count = 0
    for _ in range(0, tl.minimum(n, CAP)):
        count += 1
    if count < CAP:
        tl.store(out_ptr, 1.0)

def row_sum(x):
    rows, cols = x.shape
    out = torch.empty((rows,), dtype=x.dtype, device=x.device)
    plain = "cmpi slt" in probe[(1,)](out, cols, CAP=8).asm["ttgir"]
    cap = 1 << 20 if plain else 1
    row_sum_kernel[(rows,)](x, out, x.stride(0), cols, BLOCK=256, CAP=cap)
    return out
"""
"""Host code that asks which compiler it has, and computes rightly for the second one only."""


@pytest.fixture(scope="module")
def evaluator():
    with Evaluator(device="sim:gfx942", seed=0) as opened:
        yield opened


@pytest.mark.skipif(not FOLDS, reason="this version of Triton compiles the kernel rightly")
def test_a_kernel_that_only_the_compiler_makes_wrong_is_masked(evaluator):
    evaluation = evaluator.evaluate(TASK, ROW_SUM.replace("FACTOR", "1.0"))
    assert evaluation.outcome is Outcome.INFRA
    assert evaluation.labels == (MISCOMPILED,)
    assert "the compiler, not your kernel" in evaluation.message
    assert not evaluation.workloads
    assert get_reward("kernel-opt")(evaluation).masked
    assert "You are not to blame" in feedback(TASK, evaluation)
    assert advice(TASK, evaluation) == []


def test_a_kernel_that_is_wrong_on_other_sizes_as_well_is_blamed(evaluator):
    """Its first failure is the compiler's alone, and on smaller rows it is wrong by itself."""
    evaluation = evaluator.evaluate(TASK, ROW_SUM.replace("FACTOR", "1.5"))
    assert evaluation.outcome is Outcome.WRONG_VALUES
    assert MISCOMPILED not in evaluation.labels


def test_host_code_that_recognises_the_second_compiler_is_never_paid(evaluator):
    wrong = "result = result * FACTOR\n    else:\n        result = result * 2.0"
    source = ROW_SUM.replace("result = result * FACTOR\n    else:", wrong)
    evaluation = evaluator.evaluate(TASK, source.replace("FACTOR", "1.0") + DETECTS)
    masked = evaluation.outcome is Outcome.INFRA and evaluation.labels == (MISCOMPILED,)
    assert masked or evaluation.outcome is Outcome.WRONG_VALUES
    reward = get_reward("kernel-opt")(evaluation)
    assert reward.masked or reward.value < 0.15
