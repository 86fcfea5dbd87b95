"""Each paid launch in two orders of its workgroups: what the judge learns of the difference."""

from __future__ import annotations

from contextlib import closing

import torch

from kernel_gym.devices.base import Audit, Call, Failed
from kernel_gym.devices.sim.device import SimDevice
from kernel_gym.evaluator import Evaluator
from kernel_gym.records import Outcome
from kernel_gym.tasks import get_task

TASK = get_task("triton2triton/softmax")
HEAD = "import torch, triton\nimport triton.language as tl\n"
TURNS = (
    HEAD
    + """
@triton.jit
def turns(counter, out, cols, BLOCK: tl.constexpr):
    turn = tl.atomic_add(counter, 1)
    at = tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0) * cols + at, turn.to(tl.float16), mask=at < cols)

def softmax(x):
    out = torch.empty_like(x)
    counter = torch.zeros(1, dtype=torch.int32, device=x.device)
    turns[(x.shape[0],)](counter, out, x.shape[1], BLOCK=64)
    {after}
    return out
"""
)
CHAIN = (
    HEAD
    + """
@triton.jit
def chained(x, out, cols, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    before = tl.load(out + (row - 1) * cols + at, mask=(row > 0) & (at < cols), other=0.0)
    tl.store(out + row * cols + at, before + 1, mask=at < cols)

def softmax(x):
    out = torch.zeros_like(x)
    chained[(x.shape[0],)](x, out, x.shape[1], BLOCK=64)
    return out
"""
)
ROW_BY_TURN = (
    HEAD
    + """
@triton.jit
def kernel(x, out, counter, x_stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    turn = tl.atomic_add(counter, 1)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row.to(tl.int64) * x_stride + at, mask=at < cols, other=float("-inf"))
    values = values.to(tl.float32)
    shifted = tl.exp(values - tl.max(values, 0))
    tl.store(out + turn * cols + at, shifted / tl.sum(shifted, 0), mask=at < cols)

def softmax(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    counter = torch.zeros(1, dtype=torch.int32, device=x.device)
    block = triton.next_power_of_2(x.shape[1])
    kernel[(x.shape[0],)](x, out, counter, x.stride(0), x.shape[1], BLOCK=block)
    return out
"""
)


def call(source, audit=Audit.DRAWN):
    x = torch.ones((6, 64), dtype=torch.float16)
    with closing(SimDevice()) as device, closing(device.open(TASK, seed=1)) as session:
        assert session.load(source) is None
        return session.call({"x": x}, {"rows": 6, "cols": 64}, audit=audit)


def test_work_in_turns_has_two_results():
    result = call(TURNS.format(after=""))
    assert isinstance(result, Call)
    rows = [output.tensor[:, 0].tolist() for output in (*result.outputs, *result.other_outputs)]
    assert rows == [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0]]


def test_later_work_is_done_on_both():
    result = call(TURNS.format(after="copy = torch.empty_like(out); copy.copy_(out); out = copy"))
    rows = [output.tensor[:, 0].tolist() for output in (*result.outputs, *result.other_outputs)]
    assert rows == [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0]]


def test_a_launch_that_overwrites_both_leaves_one_result():
    result = call(TURNS.format(after="out.fill_(1)"))
    assert [o.tensor.tolist() for o in result.outputs] == [
        o.tensor.tolist() for o in result.other_outputs
    ]


def test_a_race_is_a_fault():
    result = call(CHAIN)
    assert isinstance(result, Failed)
    assert "race" in result.message


def test_calls_that_are_not_paid_run_once():
    assert call(TURNS.format(after=""), Audit.OFF).other_outputs == ()


def test_a_kernel_that_is_right_in_one_order_is_wrong():
    with Evaluator(device="sim:gfx942", seed=0) as evaluator:
        evaluation = evaluator.evaluate(TASK, ROW_BY_TURN)
    assert evaluation.outcome is Outcome.WRONG_VALUES
    assert "another order of workgroups" in evaluation.message
