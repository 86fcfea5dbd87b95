"""Codes may differ by one up to a share, and scales by some units of rounding."""

from __future__ import annotations

import torch

from kernel_gym.tasks.codes import wrong_codes, wrong_scales


def test_few_codes_may_lie_one_apart_and_none_two():
    expected = torch.arange(200).remainder(100)
    codes = expected.to(torch.int8)
    codes[7] += 1
    assert not wrong_codes(codes, expected).any()
    codes[9] += 2
    assert wrong_codes(codes, expected).nonzero().tolist() == [[9]]


def test_too_many_codes_one_apart_are_all_wrong():
    expected = torch.zeros(200, dtype=torch.int64)
    codes = expected.to(torch.int8)
    codes[:3] = 1
    assert wrong_codes(codes, expected).sum() == 3


def test_neighbours_of_an_8_bit_float_are_one_apart_across_zero_and_powers_of_two():
    every = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fnuz)
    order = every.double()[~torch.isnan(every.float())].sort().values
    expected = order.repeat(2)
    for i in range(len(order) - 1):
        codes = expected.clone()
        codes[i] = order[i + 1]
        assert not wrong_codes(codes.to(torch.float8_e4m3fnuz), expected).any()
    codes = expected.clone()
    codes[5] = order[7]
    assert wrong_codes(codes.to(torch.float8_e4m3fnuz), expected).any()


def test_a_nan_code_is_wrong():
    expected = torch.ones(300, dtype=torch.float64)
    codes = expected.clone()
    codes[4] = float("nan")
    assert wrong_codes(codes.to(torch.float8_e4m3fnuz), expected).nonzero().tolist() == [[4]]


def test_scales_may_err_by_rounding_only():
    expected = torch.tensor([1e-8, 0.5, 3.0], dtype=torch.float64)
    assert not wrong_scales((expected * (1 + 5e-7)).float(), expected).any()
    assert wrong_scales((expected * (1 + 3e-6)).float(), expected).all()
    assert wrong_scales(torch.tensor([float("nan"), 0.5, 0.0]), expected).tolist() == [
        True,
        False,
        True,
    ]


def test_codes_whose_value_is_known_may_differ_at_borders_alone():
    quotients = torch.arange(200).double().remainder(60) + 0.5
    expected = quotients.round().long()
    other = (quotients + 1e-9).floor().long()
    other = torch.where(other == expected, other + 1, other).to(torch.int8)
    assert not wrong_codes(other, expected, quotients=quotients).any()
    assert wrong_codes(other, expected).all()
    moved = quotients + 1e-3
    assert wrong_codes(other, expected, quotients=moved).all()
