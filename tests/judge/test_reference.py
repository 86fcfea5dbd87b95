"""The noise of a suite's own code, by which answers are judged that have no other oracle."""

import pytest
import torch

from kernel_gym.judge.reference import _largest_rounding, _plus_scaled


def test_the_coarsest_rounding_is_that_of_inputs_of_one_byte():
    half, byte = torch.zeros(2, dtype=torch.float16), torch.zeros(2, dtype=torch.float8_e5m2fnuz)
    assert _largest_rounding({"x": half, "n": 3}) == 0.0
    assert _largest_rounding({"x": half, "y": byte}) == torch.finfo(byte.dtype).eps
    assert _largest_rounding({"mask": torch.zeros(2, dtype=torch.bool)}) == 0.0


def test_the_noise_of_coarse_inputs_is_scaled_and_added():
    plain, moved, far = (torch.tensor([v], dtype=torch.float32) for v in (8.0, 8.5, 12.0))
    assert _plus_scaled(moved, plain, far, 0.25).item() == pytest.approx(8.5 + 1.0)
    whole = torch.tensor([3])
    assert torch.equal(_plus_scaled(whole, whole - 1, whole + 9, 0.25), whole)
