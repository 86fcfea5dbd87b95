"""Times that a device reports: the baseline of recorded calls has the candidate's inputs."""

import pytest

from kernel_gym.evaluator import Evaluator
from kernel_gym.imports.bench.import_bench import ImportBench
from kernel_gym.records import Outcome
from tests.imports.readers.recorded import recorded_task

TURNS = """
import torch
import triton
import triton.language as tl


@triton.jit
def turns_kernel(x_ptr, turns_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    for _ in range(tl.load(turns_ptr + tl.program_id(0))):
        x = tl.sin(x)
    tl.store(out_ptr + at, x, mask=at < n)


def turns(x, number):
    out = torch.empty_like(x)
    turns_kernel[(triton.cdiv(x.numel(), 64),)](x, number, out, x.numel(), BLOCK=64)
    return out
"""
TESTS = """
import torch

for top in (2, 60, 300, 900):  # few integers: the calls of one size draw from these
    turns(torch.randn(256, device="cuda"), torch.randint(top // 2, top, (4,), device="cuda"))
result_gold = turns
"""


def test_the_baseline_is_timed_on_the_inputs_of_the_candidate():
    with ImportBench("sim:gfx942") as bench:
        task = recorded_task(TURNS, TESTS, ["turns"], bench)
    times, ratios = [], []
    with Evaluator("sim:gfx942") as evaluator:
        for seed in range(4):
            evaluation = evaluator.evaluate(task, task.problem.own_candidate, seed=seed)
            assert evaluation.outcome is Outcome.PASSED, evaluation.message
            timed = [one for one in evaluation.workloads if one.speedup]
            times += [one.candidate_seconds for one in timed]
            ratios += [one.speedup for one in timed]
    assert max(times) > 2 * min(times), "the values decide how much work a call has"
    assert ratios == pytest.approx([1.0] * len(ratios), rel=0.05)
