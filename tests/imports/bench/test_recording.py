"""Recordings end in time, whatever the tests of a suite do."""

from kernel_gym.imports.bench.import_bench import ImportBench

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

SIZED_TESTS = """

@pytest.mark.parametrize("size", [512, 64, 128])
def test_size(size):
    x = torch.randn(size, device="cuda")
    kernel[(1,)](x, torch.empty_like(x), size, 1, BLOCK=512)
"""
UNCALLED_TESTS = """

def test_once():
    x = torch.randn(64, device="cuda")
    kernel[(1,)](x, torch.empty_like(x), 64, 1, BLOCK=64)
"""
NAMES = ["kernel", "twice", "helped"]


def recorded(tests, style="pytest", **limits):
    text = "import pytest\n" + KERNEL
    files = {"suite.py": (text + tests).encode()}
    options = {"style": style, "file": "suite.py", "functions": NAMES, "most": 8, "seed": 0}
    options |= {"stubs": ["timing"], "line": text.count("\n")}
    with ImportBench("sim:gfx942") as bench:
        return bench.run("record", files, options | limits)


def test_a_launch_that_takes_too_long_is_recorded():
    answer = recorded(SLOW_TESTS, seconds=30, launch_instructions=20_000_000)
    assert len(answer["calls"]) == 2
    for call in answer["calls"]:
        assert [tensor["mutated"] for tensor in call["tensors"]] == [False, True]


def test_a_test_that_does_not_end_ends_the_recording():
    answer = recorded(ENDLESS_TESTS, seconds=3, launch_instructions=20_000_000)
    assert answer["ended"] == "time"
    assert len(answer["calls"]) == 1, "the tests behind it do not run any more"


def test_a_kernel_that_another_kernel_calls_stays_what_it_is():
    answer = recorded(HELPED_TESTS, seconds=30)
    assert answer["status"] == 0, answer
    assert [call["function"] for call in answer["calls"]] == ["helped"]


def test_tests_of_small_sizes_run_first():
    answer = recorded(SIZED_TESTS, seconds=30)
    assert [call["tensors"][0]["shape"] for call in answer["calls"]] == [[64], [128], [512]]


def test_tests_that_a_file_leaves_to_a_test_runner_are_called():
    answer = recorded(UNCALLED_TESTS, style="halves", seconds=30)
    assert [call["function"] for call in answer["calls"]] == ["kernel"]
