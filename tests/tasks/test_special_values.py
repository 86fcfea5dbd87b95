"""Special values: each kind is there, whatever the shape."""

from __future__ import annotations

import pytest
import torch

from kernel_gym.tasks import draw
from kernel_gym.tasks.distributions import draw_index
from kernel_gym.tasks.special_values import (
    END_SHARE,
    SMALL_MAGNITUDES,
    SMALL_SHARE,
    is_far,
    is_special,
    replace_by_range,
    replace_by_rare,
    with_end,
)


def _generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _extremes(shape, reach=1e4, dtype=torch.float32):
    return draw(shape, dtype, f"extremes {reach}", _generator())


@pytest.mark.parametrize("shape", [(16, 640), (5760,), (2, 5760)], ids=["rows", "flat", "few rows"])
def test_extremes_have_each_kind(shape):
    values = _extremes(shape).reshape(-1, 640)
    rows = {
        "zeros": (values == 0).all(1),
        "one sign": (values > 1e3).all(1),
        "ends": (values.abs() >= 5e3).all(1) & (values == 1e4).any(1) & (values == -1e4).any(1),
        "small": (values.abs() < 1e-5).all(1) & (values != 0).any(1),
        "tiny": (values.abs() < 1e-2).all(1) & (values.abs() > 1e-4).any(1),
        "decades": (values.abs() < 1e-4).any(1) & (values.abs() > 1e3).any(1),
    }
    assert {kind for kind, where in rows.items() if where.any()} == set(rows)


def test_some_rows_are_equal():
    values = _extremes((32, 640))
    equal = (values[:, None] == values[None]).all(2) & (values != 0).any(1)
    assert int(equal.sum()) > 32


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.int8])
def test_extremes_fit_the_type(dtype):
    info = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
    values = _extremes((16, 64), reach=3e38, dtype=dtype)
    assert values.dtype == dtype
    assert torch.isfinite(values.double()).all()
    assert float(values.double().max()) >= min(float(info.max), 2.9e38)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (0, 4), (9, 0), (3, 1)])
@pytest.mark.parametrize("name", ["extremes 10.0", "shifted 100.0 10.0"])
def test_odd_shapes(name, shape):
    values = draw(shape, torch.float32, name, _generator())
    assert values.shape == shape
    assert values.abs().le(10).all()


@pytest.mark.parametrize(("reach", "spread"), [(1e5, 1.0), (100.0, 0.0992)])
def test_shifted_values_have_a_mean_of_a_thousand_spreads(reach, spread):
    values = draw((4, 4096), torch.float32, f"shifted 1000.0 {reach}", _generator())
    assert values.mean(1) == pytest.approx([1000 * spread] * 4, rel=1e-3)
    assert values.std(1) == pytest.approx([spread] * 4, rel=0.05)
    assert float(values.max()) <= reach


@pytest.mark.parametrize("name", ["extremes 10.0", "shifted 100.0 10.0"])
def test_indices_are_legal_and_meet_both_ends(name):
    index = draw_index((4096,), 77, name, _generator())
    assert (int(index.min()), int(index.max())) == (0, 76)
    assert len(index.unique()) == 77


def test_a_range_of_integers_is_met_at_each_number_of_bits():
    values = replace_by_range(
        torch.zeros(1 << 14, dtype=torch.int32), -(1 << 31), (1 << 31) - 1, _generator()
    )
    assert 0.4 < float((values == 0).double().mean()) < 0.6
    assert {int(values.min()), int(values.max())} == {-(1 << 31), (1 << 31) - 1}
    bits = values.double().abs().clamp(min=1).log2().floor().long()
    assert len(bits.unique()) >= 31


def test_a_range_of_numbers_keeps_its_ends():
    values = replace_by_range(torch.full((4096,), 0.5), 1e-3, 1.0, _generator())
    assert float(values.min()) >= 1e-3 * (1 - 1e-6)
    assert float(values.max()) == 1.0
    assert float((values < 0.01).double().mean()) > 0.05


def test_a_range_that_ends_at_zero_keeps_its_ends():
    values = replace_by_range(torch.full((4096,), -1.0), -2.0, 0.0, _generator())
    assert (float(values.min()), float(values.max())) == (-2.0, 0.0)
    assert float(((values < 0) & (values > -0.01)).double().mean()) > 0.05


@pytest.mark.parametrize("limits", [None, (-1.5, 1.5), (0.0, 1.0), (-3.0, 0.0), (5e-5, 0.98)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_a_quarter_becomes_small_and_a_sixteenth_an_end(limits, dtype):
    low, high = limits or (-1.0, 1.0)
    value = torch.full((1 << 14,), (low + high) / 2 or 0.5, dtype=dtype)
    changed = replace_by_rare(value, limits, _generator()).double()
    size = changed.abs()
    small = changed[(size < 2 * SMALL_MAGNITUDES[1]) & (size > 0)]
    if limits != (5e-5, 0.98):
        assert len(small) / len(value) == pytest.approx(SMALL_SHARE, abs=0.02)
        assert float(small.abs().min()) < 2 * SMALL_MAGNITUDES[0]
        assert (bool((small < 0).any()), bool((small > 0).any())) == (low < 0, high > 0)
    if limits is None:
        return
    assert low <= float(changed.min()) <= float(changed.max()) <= high
    for end in {low, high}:
        share = float((changed - end).abs().le(1e-3 * abs(end)).double().mean())
        assert share > END_SHARE / 2 - 0.01


@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 3)])
def test_one_value_at_least_is_rare(shape):
    changed = replace_by_rare(torch.full(shape, 0.5), (-1.0, 1.0), _generator())
    assert changed.shape == shape
    assert bool((changed != 0.5).any()) == bool(changed.numel())


@pytest.mark.parametrize(("limits", "end"), [((-1.0, 8.0), 8.0), ((-9.0, 2.0), -9.0)])
def test_one_value_becomes_an_end(limits, end):
    value = torch.rand((16, 4), generator=_generator())
    assert is_far(value, limits)
    changed = with_end(value, limits, _generator())
    assert int((changed != value).sum()) == 1
    assert bool((changed == end).any())
    assert not is_far(changed, limits)
    assert not is_far(torch.empty(0), limits)


def test_tiny_values_stay():
    value = torch.randn(4096, generator=_generator()) * 1e-3
    assert torch.equal(replace_by_rare(value, (-1.0, 1.0), _generator()), value)


def test_usual_names_are_not_special():
    assert not is_special("normal")
    assert is_special("extremes 1.0")
