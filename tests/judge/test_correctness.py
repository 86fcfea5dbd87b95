"""The two-legged row tolerance, against errors planted by hand."""

import math

import numpy as np
import pytest
import torch

from kernel_gym.judge.correctness import (
    compare_close,
    compare_exact,
    compare_mask,
    same_twice,
    share_right,
)


def _case(rows=8, columns=256, dtype=torch.float32, seed=0):
    """An oracle, a correctly rounded reference and a candidate equal to it."""
    generator = torch.Generator().manual_seed(seed)
    oracle = torch.randn(rows, columns, dtype=torch.float64, generator=generator)
    reference = oracle.to(dtype)
    return oracle, reference, reference.clone()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_correct_rounding_passes_well_within_the_tolerance(dtype):
    oracle, reference, result = _case(dtype=dtype)
    verdict = compare_close("out", result, oracle, reference)
    assert verdict.passed
    assert 0 < verdict.worst < 0.6


@pytest.mark.parametrize("wrong", [None, 1e-3, math.nan])
def test_many_rows_are_compared_in_chunks_as_at_once(monkeypatch, wrong):
    oracle, reference, result = _case(rows=50, columns=100)
    if wrong:
        result[37, 42] += wrong
    at_once = compare_close("out", result, oracle, reference)
    monkeypatch.setattr("kernel_gym.judge.correctness.CHUNK", 700)
    in_chunks = compare_close("out", result, oracle, reference)
    assert at_once.passed == (wrong is None)
    assert (at_once.passed, at_once.message, at_once.worst) == (
        in_chunks.passed,
        in_chunks.message,
        in_chunks.worst,
    )


def test_one_wrong_element_of_many_is_found_and_named():
    oracle, reference, result = _case(rows=64, columns=1000)
    result[17, 423] += 1e-3
    verdict = compare_close("out", result, oracle, reference)
    assert not verdict.passed
    assert verdict.element.index == (17, 423)
    assert verdict.element.expected == pytest.approx(float(oracle[17, 423]))
    assert verdict.element.found == pytest.approx(float(oracle[17, 423]) + 1e-3, abs=1e-6)


@pytest.mark.parametrize(("dtype", "roundings"), [(torch.float16, 1), (torch.float32, 8)])
def test_a_small_systematic_error_fails_by_the_second_leg(dtype, roundings):
    oracle, reference, _ = _case(rows=4, columns=4096, dtype=dtype)
    largest = torch.finfo(dtype).eps / 2 * oracle.abs().amax(1, keepdim=True)
    shifted = (oracle + 2 * roundings * largest).to(dtype)  # half of what the first leg allows
    verdict = compare_close("out", shifted, oracle, reference)
    assert not verdict.passed
    assert verdict.message.startswith("rms")


@pytest.mark.parametrize(
    ("rows", "wrong", "times", "passes"),
    [(4000, 4, 3.0, True), (4000, 5, 3.0, False), (4000, 1, 4.5, False), (999, 1, 3.0, False)],
)
def test_one_row_of_a_thousand_may_reach_the_first_leg_by_its_rms(rows, wrong, times, passes):
    oracle, reference, result = _case(rows=rows, columns=64, dtype=torch.float16)
    usual = (reference - oracle).square().mean(1).sqrt().median()
    result[:wrong] = (oracle[:wrong] + times * 1.05 * usual).half()
    assert compare_close("out", result, oracle, reference).passed == passes


def test_rows_have_tolerances_of_their_own():
    """An error that a large row would hide must not pass in a small one."""
    oracle, _, _ = _case(rows=2)
    oracle[0] *= 1e6
    result = oracle.float()
    result[1, 5] += 1e-2
    verdict = compare_close("out", result, oracle, oracle.float())
    assert not verdict.passed
    assert verdict.element.index[0] == 1


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_class_that_is_not_the_oracles_fails(value):
    oracle, reference, result = _case()
    result[3, 3] = value
    verdict = compare_close("out", result, oracle, reference)
    assert not verdict.passed
    assert verdict.element.index == (3, 3)


def test_infinities_must_have_the_oracles_sign_and_nan_its_place():
    oracle = torch.tensor([[math.inf, -math.inf, math.nan, 1.0]], dtype=torch.float64)
    same = oracle.float()
    assert compare_close("out", same, oracle, same).passed
    assert not compare_close("out", -same, oracle, same).passed
    moved = torch.tensor([[math.inf, -math.inf, 1.0, math.nan]])
    assert not compare_close("out", moved, oracle, same).passed


def test_an_unwritten_last_element_is_found_in_any_shape():
    for shape in [(1,), (5,), (3, 7), (2, 3, 5000), (4097,)]:
        oracle = torch.ones(shape, dtype=torch.float64)
        result = oracle.float()
        result.view(-1)[-1] = 0.0
        verdict = compare_close("out", result, oracle, oracle.float())
        assert not verdict.passed
        assert verdict.element.index == tuple(n - 1 for n in shape)


def test_a_worse_reference_widens_the_tolerance():
    oracle, _, _ = _case()
    rough = oracle.to(torch.bfloat16).float()
    assert not compare_close("out", rough, oracle, oracle.float()).passed
    assert compare_close("out", rough, oracle, rough).passed


def test_small_half_precision_values_are_not_lost_in_the_floor():
    """A softmax over 200 000 columns has outputs of 5e-6: zeros must not pass for them."""
    oracle = torch.full((1, 4096), 5e-6, dtype=torch.float64)
    reference = oracle.half()
    assert compare_close("out", reference, oracle, reference).passed
    assert not compare_close("out", torch.zeros_like(reference), oracle, reference).passed


def test_nothing_to_compare_passes():
    empty = torch.empty(0, 4)
    assert compare_close("out", empty, empty.double(), empty).passed


def test_integers_are_compared_exactly():
    expected = torch.arange(12).view(3, 4)
    assert compare_exact("i", expected.clone(), expected).passed
    result = expected.clone()
    result[1, 2] = 0
    verdict = compare_exact("i", result, expected)
    assert (verdict.passed, verdict.element.index) == (False, (1, 2))


def test_the_same_call_twice_may_differ_by_rounding_and_no_more():
    oracle, _, result = _case()
    other = torch.nextafter(result, torch.tensor(math.inf))
    assert same_twice(result, other, oracle, result)
    other[0, 0] += 1e-3
    assert not same_twice(result, other, oracle, result)


def test_two_calls_may_add_many_terms_in_two_orders():
    terms = torch.randn(20_000, 64, generator=torch.Generator().manual_seed(3))
    oracle = terms.double().sum(0, keepdim=True)

    def added(rows):
        total = torch.zeros(1, 64)
        for row in rows:
            total += row
        return total

    halves = terms[:10_000], terms[10_000:]
    first, second, reference = added(terms), added(terms.flip(0)), added(torch.cat(halves[::-1]))
    assert not same_twice(first, second, oracle, oracle.float())
    assert same_twice(first, second, oracle, reference)
    assert not same_twice(first, second + 0.01, oracle, reference)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_sums_beyond_the_end_of_the_type_are_infinite(dtype):
    end = torch.finfo(dtype).max
    oracle = torch.ones(4, 64, dtype=torch.float64)
    oracle[1, 5], oracle[2, 7], oracle[3, 9] = 3 * end, -3 * end, end * (1 + 1e-9)
    honest = oracle.to(dtype)
    assert honest.isinf().sum() >= 2
    assert compare_close("out", honest, oracle, honest).passed
    for rounded in (math.inf, end):  # at the end itself a rounding decides
        honest[3, 9] = rounded
        assert compare_close("out", honest, oracle, honest).passed
    for place, value in (((1, 5), end), ((1, 5), -math.inf), ((0, 0), math.inf), ((1, 6), 5.0)):
        wrong = honest.clone()
        wrong[place] = value
        assert not compare_close("out", wrong, oracle, honest).passed


def test_a_row_whose_values_cancel_is_judged_by_the_usual_error():
    """An attention row of near-zero values has the absolute error of its neighbours."""
    oracle, reference, _ = _case(rows=64, columns=128, dtype=torch.float16)
    oracle[3] *= 0.25
    error = torch.finfo(torch.float16).eps / 8
    signs = torch.where(torch.arange(128) % 2 == 0, 1.0, -1.0)
    reference = (oracle + 4 * error * signs).half()
    reference[3] = oracle[3].half()  # right by luck
    assert compare_close("out", (oracle + 4 * error * signs).half(), oracle, reference).passed
    result = oracle.half()
    result[3] = (oracle[3] * 1.01).half()
    assert not compare_close("out", result, oracle, reference).passed


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("left", "passes"), [(1e-6, True), (2e-5, False)])
def test_a_row_of_which_a_relu_leaves_little_has_the_error_of_its_terms(dtype, left, passes):
    """Terms near 4 cancel in fp32: the error of the difference is that of the terms."""
    oracle, _, _ = _case(rows=64, columns=512, dtype=dtype)
    oracle[3], oracle[5] = 0.0, 0.0
    oracle[3, 228] = 1e-5  # of the other row's sum the sign may be wrong
    reference = oracle.to(dtype)  # right by luck
    result = reference.clone()
    result[3, 228] += left
    result[5, 7] = left
    assert compare_close("out", result, oracle, reference).passed == passes
    assert same_twice(reference, result, oracle, reference) == passes
    result = reference.clone()
    result[4] = (oracle[4] * 1.02).to(dtype)
    assert not compare_close("out", result, oracle, reference).passed


def test_single_precision_results_of_small_rows_are_not_excused_by_others():
    oracle, reference, result = _case(rows=64)
    oracle[3] *= 1e-4
    reference[3] = oracle[3].float()
    result[3] = (oracle[3] * (1 + 1e-5)).float()
    assert not compare_close("out", result, oracle, reference).passed


def test_single_precision_sums_may_differ_by_their_order():
    """64 lanes that each add up 512 numbers, as a kernel does, against PyTorch's pairwise sum."""
    numbers = torch.rand(32, 512, 64, generator=torch.Generator().manual_seed(0))
    lanes = torch.from_numpy(np.add.accumulate(numbers.numpy(), axis=1)[:, -1])
    oracle = numbers.double().sum((1, 2))
    reference, result = numbers.flatten(1).sum(1), lanes.sum(1)
    assert not torch.equal(result, reference)
    assert compare_close("out", result, oracle, reference).passed
    assert not compare_close("out", result * (1 + 1e-6), oracle, reference).passed


@pytest.mark.parametrize("lost", [math.inf, math.nan])
def test_a_reference_that_overflows_excuses_nobody(lost):
    oracle, reference, result = _case()
    reference[2, 3] = lost
    assert compare_close("out", result, oracle, reference).passed
    result[2, 5] += 1.0
    assert not compare_close("out", result, oracle, reference).passed
    assert not same_twice(result, result + 1.0, oracle, reference)


def test_the_share_that_is_right_counts_no_zeros():
    oracle = torch.tensor([0.0, 0.0, 1.0, 2.0, 3.0, 4.0], dtype=torch.float64)
    result = torch.tensor([0.0, 0.0, 1.0, 2.0, 3.0, 9.0])
    assert share_right([result], [oracle]) == 0.75
    assert share_right([torch.zeros(6)], [oracle]) == 0.0
    assert share_right([None], [oracle]) == 0.0


def test_results_of_one_byte_are_compared():
    oracle = torch.linspace(-200, 200, 64).double()
    result = oracle.to(torch.float8_e4m3fnuz)
    assert same_twice(result, result.clone(), result.double(), result)
    moved = result.clone()
    moved[3] = 100.0
    assert not same_twice(result, moved, result.double(), result)
    lost = result.clone()
    lost[3] = float("nan")
    assert not same_twice(result, lost, result.double(), result)
    assert compare_close("out", result, result.double(), result).passed
    assert not compare_close("out", moved, result.double(), result).passed


def test_integers_of_fresh_memory_are_no_work():
    fresh = torch.full((8,), -1, dtype=torch.int32)
    oracle = torch.tensor([-1] * 6 + [3, 4], dtype=torch.int32)
    assert share_right([fresh], [oracle]) == 0.0
    fresh[6] = 3
    assert share_right([fresh], [oracle]) == 0.5
    codes = torch.tensor([255, 255, 7], dtype=torch.uint8)
    assert share_right([codes], [codes]) == 1.0
    assert share_right([torch.full_like(codes, 255)], [codes]) == 0.0
    mask = torch.tensor([True, False])
    assert share_right([mask], [mask]) == 1.0


def test_near_the_end_of_the_type_the_error_of_the_reference_decides():
    """Sums of thousands of products err by more than a rounding of their result."""
    end = torch.finfo(torch.float16).max
    oracle = torch.full((4, 64), 40_000.0, dtype=torch.float64)
    oracle[1, 5], oracle[2, 7] = end - 1_000, end + 1_000
    reference = oracle.clamp(-end, end).half()
    honest = reference.clone()
    honest[1, 5], honest[2, 7] = math.inf, end
    assert not compare_close("out", honest, oracle, reference).passed
    reference[0] += 320
    assert compare_close("out", honest, oracle, reference).passed
    for place, value in (((1, 5), -math.inf), ((2, 7), 0.0), ((0, 0), math.inf)):
        wrong = honest.clone()
        wrong[place] = value
        assert not compare_close("out", wrong, oracle, reference).passed


def test_the_element_of_a_report_differs_where_any_does():
    values = torch.tensor([[1, 2, 3], [4, 5, 6]])
    wrong = torch.tensor([[False] * 3, [True] * 3])
    expected = values.clone()
    expected[1, 2] = 7
    assert compare_mask("path", wrong, values, expected).element.index == (1, 2)
    assert compare_mask("path", wrong, values, values).element.index == (1, 0)
