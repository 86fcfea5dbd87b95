"""Implementations for other versions of Triton, and kernels that draw random numbers."""

from kernel_gym.imports.bench.import_bench import ImportBench
from kernel_gym.imports.manifest import ImportStatus
from kernel_gym.records import Outcome
from kernel_gym.tasks.sampling import make_inputs
from kernel_gym.tasks.workload import Split
from tests.imports.readers.recorded import recorded_task

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


RANDOM = """
import torch
import triton
import triton.language as tl


@triton.jit
def noise_kernel(out_ptr, n, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.rand(seed, at), mask=at < n)
"""
RANDOM_TESTS = """
import torch

for size in (300, 700):
    for seed in (0, 42):
        out = torch.empty(size, device="cuda")
        noise_kernel[(triton.cdiv(size, 256),)](out, size, seed, BLOCK=256)
result_gold = out
"""


def test_seeds_of_kernels_are_drawn_for_each_call():
    with ImportBench("sim:gfx942") as bench:
        task = recorded_task(RANDOM, RANDOM_TESTS, ["noise_kernel"], bench)
        (template,) = task.problem.templates
        assert template.seeds == ("seed0",)
        workload = task.problem.stated_workloads(Split.TRAIN)[0]
        drawn = [make_inputs(task.problem, workload, number)["seed0"] for number in range(4)]
        assert len(set(drawn)) == 4
        verdict = bench.admit(task)
        ignoring = bench.evaluator.evaluate(task, RANDOM.replace("tl.rand(seed", "tl.rand(0"))
    assert verdict.status is ImportStatus.ADMITTED, verdict.reason
    assert ignoring.outcome is Outcome.WRONG_VALUES, ignoring.message
