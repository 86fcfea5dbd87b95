"""Special values: each kind is there, whatever the shape."""

from __future__ import annotations

import pytest
import torch

from kernel_gym.tasks import draw
from kernel_gym.tasks.distributions import draw_index
from kernel_gym.tasks.special_values import (
    SMALL_MAGNITUDES,
    SMALL_SHARE,
    is_special,
    replace_by_range,
    replace_by_small,
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


@pytest.mark.parametrize("limits", [(-1.5, 1.5), (0.0, 1.0), (-3.0, 0.0)])
def test_a_quarter_of_large_values_becomes_small(limits):
    low, high = limits
    value = torch.full((4096,), low + high or high)
    changed = replace_by_small(value, low, high, _generator())
    small = changed[changed != value]
    assert len(small) / len(value) == pytest.approx(SMALL_SHARE, abs=0.02)
    assert (small.abs() >= SMALL_MAGNITUDES[0] * 0.99).all()
    assert (small.abs() <= SMALL_MAGNITUDES[1]).all()
    assert (bool((small < 0).any()), bool((small > 0).any())) == (low < 0, high > 0)
    assert low <= float(small.min()) <= float(small.max()) <= high


@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 3)])
def test_one_value_at_least_becomes_small(shape):
    changed = replace_by_small(torch.ones(shape), -1.0, 1.0, _generator())
    assert changed.shape == shape
    assert bool((changed.abs() < SMALL_MAGNITUDES[1]).any()) == bool(changed.numel())


def test_values_that_are_small_already_stay():
    value = torch.randn(4096, generator=_generator()) * 1e-4
    assert torch.equal(replace_by_small(value, -1.0, 1.0, _generator()), value)


def test_usual_names_are_not_special():
    assert not is_special("normal")
    assert is_special("extremes 1.0")
