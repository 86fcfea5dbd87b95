"""The distributions: finite, legal for the dtype, and true to their names."""

from __future__ import annotations

import pytest
import torch

from kernel_gym.tasks import DISTRIBUTIONS, draw

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.int8, torch.int32, torch.int64)


def _draw(distribution, dtype=torch.float32, shape=(64, 96), seed=0):
    return draw(shape, dtype, distribution, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_finite_typed_and_decided_by_the_generator(distribution, dtype):
    values = _draw(distribution, dtype)
    assert values.dtype == dtype
    assert values.shape == (64, 96)
    assert values.is_contiguous()
    assert torch.isfinite(values.double()).all()
    assert torch.equal(values, _draw(distribution, dtype))
    if not (distribution == "tiny" and not dtype.is_floating_point):
        assert not torch.equal(values, _draw(distribution, dtype, seed=1))


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (0, 4), (2, 3, 5)])
def test_odd_shapes(distribution, shape):
    assert _draw(distribution, shape=shape).shape == shape


def test_moments():
    wide = {name: _draw(name, shape=(512, 512)).double() for name in DISTRIBUTIONS}
    assert wide["normal"].std() == pytest.approx(1, rel=0.02)
    assert wide["uniform"].abs().max() <= 1
    assert wide["offset"].mean() == pytest.approx(30, rel=0.01)
    assert wide["tiny"].std() == pytest.approx(1e-3, rel=0.02)
    assert wide["large"].std() == pytest.approx(1e3, rel=0.02)
    assert (wide["sparse"] == 0).double().mean() == pytest.approx(0.9, abs=0.02)
    kurtosis = (wide["heavy_tail"] ** 4).mean() / (wide["heavy_tail"] ** 2).mean() ** 2
    assert kurtosis > 20


def test_constant_rows_differ_between_rows_only():
    values = _draw("constant_rows")
    assert (values == values[:, :1]).all()
    assert len(values[:, 0].unique()) > 50


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_range_ends_reaches_both_ends(dtype):
    info = torch.finfo(dtype)
    values = set(_draw("range_ends", dtype).double().flatten().tolist())
    assert values == {info.min, -info.tiny, 0.0, info.tiny, info.max}


def test_large_values_fit_half_precision():
    values = draw((1 << 20,), torch.float16, "large", torch.Generator().manual_seed(0))
    assert torch.isfinite(values).all()


def test_an_unknown_name_lists_the_menu():
    with pytest.raises(ValueError, match=r"found 'gauss', expected one of normal, uniform"):
        _draw("gauss")
