"""Implementations that were written for other versions of Triton are recorded and called."""

from kernel_gym.admission.import_bench import ImportBench
from kernel_gym.records import Outcome
from kernel_gym.tasks.workload import Split
from tests.tasks.importers.recorded import recorded_task

ANNOTATED = """
import torch
import triton
import triton.language as tl

FACTOR: tl.constexpr = 3


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, FACTOR * tl.load(x_ptr + at, mask=at < n), mask=at < n)


def scale(x: torch.Tensor):
    assert scale.__annotations__ == {"x": torch.Tensor}
    out = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
    return out
"""
TESTS = """
import torch

result_gold = scale(torch.randn(300, device="cuda"))
"""


def test_kernels_may_read_annotated_globals():
    with ImportBench("sim:gfx942") as bench:
        task = recorded_task(ANNOTATED, TESTS, ["scale"], bench)
        assert task.problem.stated_workloads(Split.TRAIN)
        own = bench.evaluator.evaluate(task, ANNOTATED)
    assert own.outcome is Outcome.PASSED, (own.message, own.detail)
