"""Recordings end in time, whatever the tests of a suite do."""

import pytest

from kernel_gym.admission.import_bench import ImportBench

KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, turns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, x + 1.0, mask=at < n)
    for _ in range(turns):
        x = tl.exp(tl.sin(x))
    tl.store(out_ptr + at, x, mask=at < n)
"""
SLOW_TESTS = """

@pytest.mark.parametrize("turns", [1 << 30, 1])
def test_kernel(turns):
    x, out = torch.randn(64, device="cuda"), torch.empty(64, device="cuda")
    kernel[(1,)](x, out, 64, turns, BLOCK=64)
    assert turns == 1
"""
ENDLESS_TESTS = """

@pytest.mark.parametrize("number", range(4))
def test_endless(number):
    x = torch.randn(64 + number, device="cuda")
    kernel[(1,)](x, torch.empty_like(x), 64, 1, BLOCK=64)
    while True:
        try:
            sum(range(1000))
        except Exception:
            pass
"""
HELPED_TESTS = """
from timing import Timer


@triton.jit
def twice(x):
    return x * 2.0


@triton.jit
def helped(x_ptr, out_ptr):
    tl.store(out_ptr, twice(tl.load(x_ptr)))


def test_helped():
    x, out = torch.randn(1, device="cuda"), torch.empty(1, device="cuda")
    helped[(1,)](x, out)
    assert out == 2 * x
"""


NAMES = ["kernel", "twice", "helped"]


def recorded(tests, **limits):
    files = {"suite.py": ("import pytest\n" + KERNEL + tests).encode()}
    options = {"style": "pytest", "file": "suite.py", "functions": NAMES, "most": 8, "seed": 0}
    options |= {"stubs": ["timing"]}
    with ImportBench("sim:gfx942") as bench:
        return bench.run("record", files, options | limits)


@pytest.mark.timeout(120)
def test_a_launch_that_takes_too_long_is_recorded():
    answer = recorded(SLOW_TESTS, seconds=30, launch_seconds=0.5)
    assert len(answer["calls"]) == 2
    for call in answer["calls"]:
        assert [tensor["mutated"] for tensor in call["tensors"]] == [False, True]


@pytest.mark.timeout(120)
def test_a_test_that_does_not_end_ends_the_recording():
    answer = recorded(ENDLESS_TESTS, seconds=3, launch_seconds=0.5)
    assert answer["ended"] == "time"
    assert len(answer["calls"]) == 1, "the tests behind it do not run any more"


def test_a_kernel_that_another_kernel_calls_stays_what_it_is():
    answer = recorded(HELPED_TESTS, seconds=30)
    assert answer["status"] == 0, answer
    assert [call["function"] for call in answer["calls"]] == ["helped"]
