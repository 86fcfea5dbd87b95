"""The data distributions from which the tensor inputs of problems are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch

from kernel_gym.tasks.special_values import draw_special, draw_special_index, is_special

_Draw = Callable[[tuple[int, ...], torch.Generator], torch.Tensor]


def _normal(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    return torch.randn(shape, generator=generator)


def _uniform(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    return torch.rand(shape, generator=generator) * 2 - 1


def _offset(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    return _normal(shape, generator) + 30


def _tiny(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    return _normal(shape, generator) * 1e-3


def _large(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    return _normal(shape, generator) * 1e3


def _wide(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Returns values whose dot products, as in attention scores, go far beyond 88.

    There float32's exponential overflows unless the largest score is subtracted.
    """
    return _normal(shape, generator) * 16


def _negative(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Returns values around -3, where the forms of GELU and similar activations differ."""
    return _normal(shape, generator) * 0.5 - 3


def _heavy_tail(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    return _normal(shape, generator) ** 3


def _sparse(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    keep = torch.rand(shape, generator=generator) < 0.1
    return _normal(shape, generator) * keep


def _constant_rows(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    rows = (*shape[:-1], 1) if shape else ()
    return _normal(rows, generator).expand(shape).clone()


def _structured(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Returns a sine wave along the last axis, with another phase and frequency in each row."""
    if not shape:
        return _normal(shape, generator)
    rows = (*shape[:-1], 1)
    phase = torch.rand(rows, generator=generator) * 6.28
    pitch = torch.rand(rows, generator=generator) * 0.3 + 0.01
    return torch.sin(torch.arange(shape[-1]) * pitch + phase) * 2


def _range_ends(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Returns codes from -2 to 2, which `draw` maps to the extreme values of the dtype."""
    return torch.randint(-2, 3, shape, generator=generator).float()


_MENU: Mapping[str, _Draw] = MappingProxyType(
    {
        "normal": _normal,
        "uniform": _uniform,
        "offset": _offset,
        "tiny": _tiny,
        "large": _large,
        "wide": _wide,
        "negative": _negative,
        "heavy_tail": _heavy_tail,
        "sparse": _sparse,
        "constant_rows": _constant_rows,
        "structured": _structured,
        "range_ends": _range_ends,
    }
)

DISTRIBUTIONS = tuple(_MENU)
"""The names of all distributions."""


def _limits(dtype: torch.dtype) -> tuple[float, float]:
    info = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
    return float(info.min), float(info.max)


def _ends(codes: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Maps -2 to 2 to the lowest, largest negative, zero, smallest positive and highest value."""
    if dtype.is_floating_point:
        info = torch.finfo(dtype)
        table = torch.tensor([info.min, -info.tiny, 0.0, info.tiny, info.max], dtype=dtype)
    else:
        whole = torch.iinfo(dtype)
        table = torch.tensor([whole.min, max(whole.min, -1), 0, 1, whole.max], dtype=dtype)
    return table[codes.long() + 2]


def draw(
    shape: tuple[int, ...],
    dtype: torch.dtype,
    distribution: str,
    generator: torch.Generator,
) -> torch.Tensor:
    """Draws one tensor.

    Args:
        shape: The shape of the tensor.
        dtype: A floating-point or integer type. Integers are rounded from the real draw.
        distribution: One of `DISTRIBUTIONS`, or one of special values
            (`kernel_gym/tasks/special_values.py`).
        generator: A CPU generator, the only source of randomness.

    Returns:
        A contiguous CPU tensor. Every element is finite in `dtype`.
    """
    special = is_special(distribution)
    if not special and distribution not in _MENU:
        raise ValueError(
            f"distribution: found {distribution!r}, expected one of {', '.join(_MENU)}"
        )
    if special:
        values = draw_special(shape, distribution, generator)
    else:
        values = _MENU[distribution](shape, generator)
    if distribution == "range_ends":
        return _ends(values, dtype)
    low, high = _limits(dtype)
    if not dtype.is_floating_point:
        values = values.double().round()
        high = min(high, 2.0**53)
    return values.clamp(low, high).to(dtype).contiguous()


def draw_index(
    shape: tuple[int, ...], count: int, distribution: str, generator: torch.Generator
) -> torch.Tensor:
    """Draws int64 indices with `0 <= index < count`.

    The magnitudes of the distribution are reduced modulo the range. "uniform" draws every index
    with the same probability, "heavy_tail" prefers low indices, as the words of a language do,
    "sparse" repeats 0, and "constant_rows" repeats one index along a row.

    Args:
        shape: The shape of the tensor.
        count: The number of different indices, at least 1.
        distribution: One of `DISTRIBUTIONS`, or one of special values.
        generator: A CPU generator, the only source of randomness.
    """
    if is_special(distribution):
        return draw_special_index(shape, count, generator)
    values = draw(shape, torch.float32, distribution, generator).double().abs()
    spread = count if distribution == "uniform" else count / 3
    return (values * spread).floor().remainder(count).long()


def draw_lengths(count: int, most: int, generator: torch.Generator) -> torch.Tensor:
    """Draws int32[count] lengths from 1 to `most`, the first one in the last quarter.

    Otherwise all sequences of a few would sometimes be short, so that no kernel could miss the
    places behind them.
    """
    lengths = torch.randint(1, most + 1, (count,), generator=generator)
    lengths[:1] = torch.randint(most - most // 4, most + 1, (1,), generator=generator)
    return lengths.int()


def draw_mask(shape: tuple[int, ...], share: float, generator: torch.Generator) -> torch.Tensor:
    """Draws which elements are hidden, such as ignored rows: bool of a shape.

    The first element is never hidden. A workload of one row, which the far end of an axis can be,
    would otherwise sometimes have an answer that no kernel can miss.

    Args:
        shape: The shape of the mask.
        share: The share of elements that are hidden.
        generator: The source of random numbers.
    """
    mask = torch.rand(shape, generator=generator) < share
    mask.view(-1)[:1] = False
    return mask
