"""Workloads of recorded calls whose kernel never ends at some sizes."""

import pytest

from kernel_gym.imports.bench import stating, suite_code
from kernel_gym.imports.bench.import_bench import ImportBench
from kernel_gym.imports.readers import recording
from kernel_gym.imports.readers.base import UnsupportedTask
from kernel_gym.tasks.workload import Split
from tests.imports.readers.recorded import recorded_task

ENDLESS = """
import torch
import triton
import triton.language as tl


@triton.jit
def turning_kernel(x_ptr, out_ptr, n, turns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    for _ in range(turns):
        x = tl.exp(tl.sin(x))
    tl.store(out_ptr + at, x, mask=at < n)


def turning(x):
    out = torch.empty_like(x)
    turns = 1 << 30 if ENDS_NOT else 2
    turning_kernel[(1,)](x, out, x.numel(), turns, BLOCK=512)
    return out
"""
TESTS = """
import torch

result_gold = turning(torch.randn(SIZE, device="cuda"))
"""


@pytest.fixture
def bench(monkeypatch):
    """A bench that stops launches sooner than an import does."""
    monkeypatch.setattr(suite_code, "MAX_LAUNCH_INSTRUCTIONS", 20_000_000)
    monkeypatch.setattr(recording, "MAX_LAUNCH_INSTRUCTIONS", 20_000_000)
    with ImportBench("sim:gfx942") as opened:
        yield opened


def stated(bench, ends_not, size):
    implementation = ENDLESS.replace("ENDS_NOT", ends_not)
    task = recorded_task(implementation, TESTS.replace("SIZE", str(size)), ["turning"], bench)
    return [one.dims["d0"] for one in task.problem.stated_workloads(Split.TRAIN)]


@pytest.mark.parametrize("size", [1, 3, 400])
def test_a_kernel_that_ends_at_no_size_is_left_out(bench, size):
    with pytest.raises(UnsupportedTask, match="too many instructions in one launch"):
        stated(bench, "True", size)


def test_a_task_is_given_up_if_its_first_call_takes_too_long(bench, monkeypatch):
    calls = []
    call = suite_code.SuiteCode.call

    def counted(self, *args, **options):
        calls.append(args)
        return call(self, *args, **options)

    monkeypatch.setattr(suite_code.SuiteCode, "call", counted)
    monkeypatch.setattr(stating, "MAX_SECONDS_WITHOUT_WORKLOAD", 0.1)
    with pytest.raises(UnsupportedTask, match="too many instructions in one launch"):
        stated(bench, "True", 400)
    assert len(calls) == 1


def test_a_kernel_that_ends_at_small_sizes_gets_a_twin(bench):
    assert stated(bench, "x.numel() > 100", 400) == [100]


def test_unseen_sizes_at_which_a_kernel_never_ends_are_left_out(bench):
    task = recorded_task(
        ENDLESS.replace("ENDS_NOT", "x.numel() not in (64, 96)"),
        TESTS.replace(
            "result_gold = turning", "turning(torch.randn(96, device='cuda'))\nturning"
        ).replace("SIZE", "64"),
        ["turning"],
        bench,
    )
    sizes = {split: [w.dims["d0"] for w in task.problem.stated_workloads(split)] for split in Split}
    assert sorted(sizes[Split.TRAIN]) == [64, 96]
    assert not sizes[Split.UNSEEN]
    assert not sizes[Split.ADVERSARIAL]
