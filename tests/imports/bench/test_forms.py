"""Each form of recorded call is kept, or named with the reason why it is not."""

import pytest

from kernel_gym.imports.bench.import_bench import ImportBench
from kernel_gym.records import Outcome
from kernel_gym.tasks.workload import Split
from tests.imports.readers.recorded import recorded_task

PEAK = """
import torch
import triton
import triton.language as tl


@triton.jit
def peak_kernel(x_ptr, out_ptr, many, count, across, along, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * across + at * along, mask=at < count, other=float("-inf"))
    tl.store(out_ptr + row, tl.max(x, axis=0))


def peak(x, dim, keepdim=False):
    many, count = x.shape[1 - dim], x.shape[dim]
    shape = (many,) if not keepdim else (1, many) if dim == 0 else (many, 1)
    out = torch.empty(shape, dtype=x.dtype, device=x.device)
    across, along = x.stride(1 - dim), x.stride(dim)
    peak_kernel[(many,)](x, out, many, count, across, along, BLOCK=64)
    return out
"""
TESTS = """
import torch

for rows, cols in ((5, 7), (40, 24)):
    x = torch.randn(rows, cols, device="cuda")
    peak(x, 0)
    peak(x, 1)
    peak(x, 1, keepdim=True)
    peak(x.double(), 1)
peak(torch.randn(6, 5, device="cuda"), 0, keepdim=True)
result_gold = 0
"""
CHANGES = {
    "the dimension is ignored": ("many, count = x", "dim = 1\n    many, count = x"),
    "keepdim is ignored": ("shape = (many,) if not keepdim else", "shape = (many,) if True else"),
    "another type is ignored": ("dtype=x.dtype", "dtype=torch.float32"),
    "row strides are ignored": (
        "x.stride(1 - dim), x.stride(dim)",
        "(x.shape[1], 1) if dim == 1 else (1, x.shape[1])",
    ),
}


@pytest.fixture(scope="module")
def bench():
    with ImportBench("sim:gfx942") as opened:
        yield opened


@pytest.fixture(scope="module")
def peak(bench):
    return recorded_task(PEAK, TESTS, ["peak"], bench)


def forms_of(task):
    """Returns the sizes of train workloads by form: keyword, dimension and type."""
    sizes = {}
    for workload in task.problem.stated_workloads(Split.TRAIN):
        call = task.problem.templates[workload.dims["call"]].call
        form = call.args[1]["number"], "keepdim" in call.kwargs, call.tensors[0].dtype
        sizes[form] = workload.dims.get("d0")
    return sizes


def test_each_form_has_a_workload_of_its_largest_size(peak):
    assert forms_of(peak) == {
        (0, False, "float32"): 40,
        (1, False, "float32"): 40,
        (1, True, "float32"): 40,
        (1, False, "float64"): 40,
        (0, True, "float32"): 6,
    }


def test_rows_are_padded_and_values_wider_where_the_own_code_takes_them(peak):
    hidden = peak.problem.stated_workloads(Split.ADVERSARIAL)
    tensors = [peak.problem.templates[one.dims["call"]].call.tensors[0] for one in hidden]
    assert any(form.padding for form in tensors)
    assert max(float(form.values.high) for form in tensors) > 64


def test_each_function_has_calls_with_padded_rows_and_larger_values(bench):
    source = PEAK + "\n\ndef other(x, dim):\n    return peak(x, dim)\n"
    tests = """
import torch

x = torch.randn(40, 24, device="cuda")
peak(x, 0)
peak(x, 1)
other(x, 1)
result_gold = 0
"""
    problem = recorded_task(source, tests, ["peak", "other"], bench).problem
    hidden = problem.stated_workloads(Split.ADVERSARIAL)
    calls = [problem.templates[one.dims["call"]].call for one in hidden]
    padded = [call.function for call in calls if call.tensors[0].padding]
    wide = [call.function for call in calls if float(call.tensors[0].values.high) > 64]
    assert sorted(padded) == sorted(wide) == ["other", "peak"]


def test_sizes_reach_beyond_the_largest_recorded_one(peak):
    sizes = [one.dims for one in peak.problem.stated_workloads(Split.UNSEEN)]
    assert max(dims["d0"] for dims in sizes) > 40


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_a_kernel_that_ignores_an_argument_is_refused(bench, peak, change):
    before, after = CHANGES[change]
    assert before in PEAK
    evaluation = bench.evaluator.evaluate(peak, PEAK.replace(before, after))
    assert evaluation.outcome in (
        Outcome.WRONG_VALUES,
        Outcome.WRONG_METADATA,
        Outcome.UNSEEN_FAILED,
        Outcome.RUNTIME_ERROR,
    ), evaluation.message


def test_the_prompt_shows_what_a_call_passes(peak):
    lines = peak.problem.prompt_parts(peak.mode).signature.splitlines()
    assert any(line.endswith("peak(float32[d0, d1], 1, keepdim=True)") for line in lines)


RANDOM = PEAK.replace(
    "def peak(x, dim, keepdim=False):",
    "def peak(x, dim, keepdim=False, training=True):\n"
    "    x = torch.where(torch.rand_like(x) < 0.5, x, -9.0) if training else x",
)


def test_a_random_default_path_is_flagged_and_named(bench):
    tests = """
import torch

x = torch.randn(40, 24, device="cuda")
peak(x, 0)
peak(x, 1)
peak(x, 1, training=False)
result_gold = 0
"""
    task = recorded_task(RANDOM, tests, ["peak"], bench)
    statement = bench._statements[task.problem.name]
    assert statement.flags == {
        "stochastic": "2 of 3 forms of its calls: two calls on the same data differ"
    }
    lines = task.problem.prompt_parts(task.mode).signature.splitlines()
    assert sum("it is not made here" in line for line in lines) == 2
    left_out = [note for note in statement.notes if note.startswith("left out: peak(")]
    assert len(left_out) == 2
    assert all("two calls on the same data differ" in note for note in left_out)
