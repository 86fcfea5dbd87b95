"""The menu of special values: each problem draws an entry or excludes it in its text."""

from __future__ import annotations

import pytest
import torch

from kernel_gym.tasks import (
    Problem,
    Scale,
    TensorArg,
    Workload,
    adversarial_workloads,
    get_problem,
    get_task,
    make_inputs,
    problem_names,
)
from kernel_gym.tasks.prompting import prompt
from kernel_gym.tasks.ranges import is_free, range_texts, ranges_of
from kernel_gym.tasks.special_menu import (
    EXCLUSIONS,
    MIN_ROW_ELEMENTS,
    SpecialValue,
    holds,
    legal_codes,
    menu_of,
    rows_of,
    with_entries,
)
from kernel_gym.tasks.special_values import EXTREMES, MAX_TINY

each_problem = pytest.mark.parametrize("name", problem_names())


def _hidden(problem: Problem) -> list[Workload]:
    drawn = {
        workload.key: workload
        for language in ("triton", "hip")
        for workload in adversarial_workloads(problem, Scale.SIM, language)
    }
    return list(drawn.values())


def _special(problem: Problem) -> list[Workload]:
    return [w for w in _hidden(problem) if w.distribution.startswith(EXTREMES)]


@each_problem
def test_each_entry_is_drawn_or_excluded_in_the_text(name):
    problem = get_problem(name)
    ranges, text = ranges_of(problem), " ".join(range_texts(problem))
    left = {
        (arg.name, entry)
        for arg in problem.args
        if isinstance(arg, TensorArg)
        for entry in menu_of(arg, ranges.limits(arg.name))
    }
    for entry, names in ranges.excluded.items():
        for arg in names:
            assert (arg, entry) in left, "it is excluded, and no entry of the tensor anyway"
            left.discard((arg, entry))
        assert f"{EXCLUSIONS[entry]} in {', '.join(f'`{arg}`' for arg in names)}" in text
    for workload in _hidden(problem) if ranges.unwritten else _special(problem):
        inputs = make_inputs(problem, workload, 11)
        left = {(a, e) for a, e in left if not holds(e, inputs[a], ranges.limits(a))}
    assert not left


@pytest.mark.parametrize("name", problem_names()[::5])
def test_small_values_are_drawn_where_values_are_free(name):
    problem = get_problem(name)
    ranges = ranges_of(problem)
    hidden = adversarial_workloads(problem, Scale.SIM, "hip")
    tiny = [w for w in hidden if w.distribution == "tiny"]
    assert bool(tiny) or not problem.tiny_inputs
    for workload in tiny[-1:]:
        inputs = make_inputs(problem, workload, 13)
        for arg in problem.args:
            if not isinstance(arg, TensorArg) or not is_free(problem, arg):
                continue
            if not arg.dtype.is_floating_point or arg.dtype.itemsize == 1:
                continue
            size = inputs[arg.name].double().abs()
            low, high = ranges.limits(arg.name) or (-1, 1)
            is_small = bool(((size > 0) & (size <= 1e-4)).any())
            assert is_small or low >= 1e-4 or high <= -1e-4 or size.max() <= MAX_TINY, arg.name


@each_problem
def test_what_is_excluded_is_not_drawn(name):
    problem = get_problem(name)
    ranges = ranges_of(problem)
    for workload in _special(problem) if ranges.excluded else ():
        inputs = make_inputs(problem, workload, 12)
        for entry, names in ranges.excluded.items():
            for arg in names:
                value = inputs[arg]
                if entry is SpecialValue.CODES or rows_of(value).shape[1] >= MIN_ROW_ELEMENTS:
                    assert not holds(entry, value, ranges.limits(arg)), (arg, entry)


def test_the_prompt_shows_what_is_excluded():
    text = prompt(get_task("triton2triton/speculative_verify"), "facts")
    assert (
        "Not legal, and never drawn: a row of zeros in `draft`, `target`; equal rows in `target`."
        in text
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", [(16, 8), (2, 64), (512,), (40, 3)])
def test_each_entry_is_written_and_the_others_stay(dtype, shape):
    value = torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype)
    before = value.clone()
    arg = TensorArg("x", dtype, shape=", ".join("ab"[: len(shape)]))
    entries = menu_of(arg, None)
    changed = with_entries(value, entries, None)
    assert torch.equal(value, before)
    assert all(holds(entry, changed) for entry in entries)
    assert changed.isfinite().all()


@pytest.mark.parametrize("limits", [(-1.0, 8.0), (0.0, 1.0), (-3.0, 0.0), (0.5, 2.0)])
def test_entries_stay_within_the_range(limits):
    low, high = limits
    value = low + (high - low) * torch.rand((16, 16), generator=torch.Generator().manual_seed(1))
    entries = menu_of(TensorArg("x", torch.float32, shape="a, b"), limits)
    changed = with_entries(value, entries, limits)
    assert low <= float(changed.min())
    assert float(changed.max()) <= high
    assert all(holds(entry, changed) for entry in entries)
    assert (SpecialValue.ZEROS in entries) == (low <= 0 <= high)
    assert (SpecialValue.POSITIVE in entries) == (high > 0)
    assert (SpecialValue.NEGATIVE in entries) == (low < 0)


@pytest.mark.parametrize(
    ("dtype", "limits", "count"),
    [
        (torch.uint8, None, 256),
        (torch.int8, (-127, 127), 255),
        (torch.float8_e4m3fnuz, None, 255),
        (torch.float8_e4m3fn, None, 254),
        (torch.float8_e4m3fn, (-1.0, 1.0), 114),
    ],
)
def test_all_legal_codes_are_written(dtype, limits, count):
    assert len(legal_codes(dtype, limits)) == count
    entries = menu_of(TensorArg("x", dtype, shape="a, b"), limits)
    changed = with_entries(torch.ones(32, 32).to(dtype), entries, limits)
    assert holds(SpecialValue.CODES, changed, limits)
    assert changed.double().isfinite().all()


def test_sorted_starts_of_segments_stay_sorted():
    starts = torch.arange(0, 64, dtype=torch.int32)
    changed = with_entries(starts, menu_of(TensorArg("start", torch.int32, shape="a"), None), None)
    assert holds(SpecialValue.RUN, changed)
    assert (changed.diff() >= 0).all()
    assert (int(changed[0]), int(changed[-1])) == (0, 63)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (0, 4), (3, 1)])
def test_odd_shapes_stay_legal(shape):
    value = torch.rand(shape)
    entries = menu_of(TensorArg("x", torch.float32, shape="a, b"), None)
    changed = with_entries(value, entries, None)
    assert changed.shape == value.shape
    assert changed.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.int32])
def test_equal_rows_are_those_that_sorting_finds(dtype):
    for seed in range(40):
        draw = torch.Generator().manual_seed(seed)
        rows = torch.randint(-1, 2, (12, 16 if seed % 2 else 3), generator=draw).to(dtype)
        value = rows if seed % 2 else rows.repeat(1, 6)  # rows of three elements are often equal
        without_zeros = value[(value != 0).any(1)]
        equal = len(torch.unique(without_zeros, dim=0)) < len(without_zeros)
        assert holds(SpecialValue.EQUAL, value) is equal


def test_zeros_of_both_signs_are_equal_and_nan_is_not():
    rows = torch.eye(16)[:9]
    rows[7], rows[8] = rows[3], -0.0 * rows[3] + rows[3]
    rows[8][0] = -0.0
    rows[7, 15] = 5.0
    rows[8, 15] = 5.0
    assert holds(SpecialValue.EQUAL, rows)
    rows[7:, 14] = torch.nan
    assert not holds(SpecialValue.EQUAL, rows)


def test_rows_are_compared_on_their_own_device():
    """The judge of a GPU makes that GPU the default device; here it is one without values."""
    rows = torch.arange(256.0).view(16, 16) % 251
    with torch.device("meta"):
        assert not holds(SpecialValue.EQUAL, rows)
        rows[9] = rows[5]
        assert holds(SpecialValue.EQUAL, rows)
