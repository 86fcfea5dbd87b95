"""Special values: what a type can hold and models seldom do.

A kernel that is right on usual data may be wrong on legal values far from them: beyond the range of
a narrower type, where a sum of squares cancels, among zeros, at the ends of an integer type. Two
distributions draw such values. Their names carry numbers, which a problem states (`Ranges`).
"""

from __future__ import annotations

import torch

EXTREMES = "extremes"
"""The head of the name of the distribution that mixes special values: "extremes REACH"."""
SHIFTED = "shifted"
"""The head of the name of normal values with a large mean: "shifted SPREADS REACH"."""
_KINDS = 9
_SMALL = 1e-6
_TINY = 1e-3
SMALL_SHARE = 0.25
"""The share of elements that small magnitudes replace."""
SMALL_MAGNITUDES = (1e-6, 1e-4)
"""The least and the largest of these magnitudes. All powers of ten between are alike likely."""
SMALL_LEVELS = tuple((1 + (4 * part + 1) / 256) * 2.0**-14 for part in range(20))
"""The magnitudes of tensors that are small everywhere: below 1e-4, and as far as possible above the
next bfloat16, so that a kernel that rounds them loses about the same share of each. None is half of
another one, which quantised outputs would round either way."""
NEAR_END = 0.75
"""A tensor with a magnitude of this share of its range needs no end of it."""
MAX_TINY = 0.01
"""Values of the distribution "tiny" stay within this magnitude: ten standard deviations."""
END_SHARE = 1 / 16
"""The share of elements that the ends of a stated range replace."""
_MARGIN = 8
"""Standard deviations that normal values stay within."""


def is_special(distribution: str) -> bool:
    """Whether a name is one of a distribution of special values."""
    return distribution.split()[0] in (EXTREMES, SHIFTED)


def draw_special(
    shape: tuple[int, ...], distribution: str, generator: torch.Generator
) -> torch.Tensor:
    """Draws float32[shape] from a distribution of special values."""
    name, *numbers = distribution.split()
    if not torch.Size(shape).numel():
        return torch.zeros(shape)
    if name == EXTREMES:
        return _extremes(shape, float(numbers[0]), generator)
    return _shifted(shape, float(numbers[0]), float(numbers[1]), generator)


def draw_special_index(
    shape: tuple[int, ...], count: int, generator: torch.Generator
) -> torch.Tensor:
    """Draws int64 indices below `count`; a quarter of them are the first or the last one."""
    index = (torch.rand(shape, generator=generator, dtype=torch.float64) * count).long()
    fate = torch.rand(shape, generator=generator)
    index = index.clamp(max=count - 1).masked_fill(fate < 1 / 8, 0)
    return index.masked_fill(fate > 7 / 8, count - 1)


def _shifted(
    shape: tuple[int, ...], spreads: float, reach: float, generator: torch.Generator
) -> torch.Tensor:
    """Returns normal values whose mean is `spreads` times their spread, at most `reach`.

    There a variance from a sum of squares loses most of its digits.
    """
    spread = min(1.0, reach / (spreads + _MARGIN))
    return spread * (spreads + torch.randn(shape, generator=generator))


def _extremes(shape: tuple[int, ...], reach: float, generator: torch.Generator) -> torch.Tensor:
    """Returns rows of nine kinds in turn; the parts of a row take turns if there are fewer rows.

    The kinds: magnitudes near `reach` (some of them equal to it), magnitudes of all decades up to
    it, large positive values, values around 1e-6 and around 1e-3, zeros, copies of one row, normal
    values, and large negative values.
    """
    normal = torch.randn(shape, generator=generator)
    share = torch.rand(shape, generator=generator)
    sign = torch.where(normal < 0, -1.0, 1.0)
    last = shape[-1:] or (1,)
    limited = normal.clamp(-reach, reach)
    decades = _SMALL * (max(reach, _TINY) / _SMALL) ** share.double()
    kinds = (
        sign * (0.5 + share).clamp(max=1.0) * reach,
        sign * decades.float(),
        (0.25 + 0.25 * share) * reach,
        _SMALL * normal,
        _TINY * normal,
        torch.zeros_like(normal),
        torch.randn(last, generator=generator).clamp(-reach, reach).expand(shape or (1,)),
        limited,
        -(0.25 + 0.25 * share) * reach,
    )
    kind = _kind_of_each(shape)
    values = limited
    for number, drawn in enumerate(kinds):
        values = torch.where(kind == number, drawn.reshape(shape), values)
    return values


def _kind_of_each(shape: tuple[int, ...]) -> torch.Tensor:
    """Returns the number of the kind of each value: by row, or by part of a row if few rows."""
    cols = shape[-1] if shape else 1
    rows = max(1, torch.Size(shape[:-1]).numel())
    row = torch.arange(rows)[:, None]
    part = torch.arange(cols)[None, :] * _KINDS // max(1, cols)
    kind = row if rows >= _KINDS else row + part
    return (kind % _KINDS).expand(rows, cols).reshape(shape)


def replace_by_range(
    value: torch.Tensor, low: float, high: float, generator: torch.Generator
) -> torch.Tensor:
    """Replaces half of the elements by values of a range, its ends among them.

    A quarter is uniform within the range. The other quarter has magnitudes of which all powers of
    two are alike likely, so that a range of integers is met at each number of bits.

    Args:
        value: Integers or floating-point numbers.
        low: The least legal value.
        high: The largest legal value.
        generator: The only source of randomness.
    """
    shape, whole = value.shape, not value.is_floating_point()
    fate, place, sign = torch.rand((3, *shape), generator=generator, dtype=torch.float64)
    uniform = low + place * (high - low + whole)
    least = max(low, 1.0 if whole else 1e-6 * (high if high > 0 else -low))
    powers = least * (max(abs(low), abs(high)) / least) ** place
    powers = torch.where((sign < 0.5) & (low < 0), -powers, powers)
    drawn = torch.where(fate < 0.25, uniform, powers)
    drawn = torch.where(fate > 0.47, torch.where(sign < 0.5, float(low), float(high)), drawn)
    drawn = (drawn.floor() if whole else drawn).clamp(low, high).to(value.dtype)
    return torch.where(fate < 0.5, drawn, value)


def replace_by_rare(
    value: torch.Tensor,
    limits: tuple[float, float] | None,
    generator: torch.Generator,
    with_ends: bool = True,
) -> torch.Tensor:
    """Replaces elements by what a tensor drawn around one never holds: small values, and its ends.

    A quarter becomes small, and a sixteenth an end of the stated range. Otherwise a kernel that
    takes small values for zeros, or clips large ones, would be right. Tensors that are drawn from
    the distribution of tiny values stay as they are.

    Args:
        value: Floating-point numbers.
        limits: The least and the largest legal value; None if all are legal.
        generator: The only source of randomness.
        with_ends: Whether it gets ends.
    """
    least, most = SMALL_MAGNITUDES
    low, high = limits or (-most, most)
    if not value.numel() or float(value.abs().max()) <= MAX_TINY:
        return value
    fate, place, sign = torch.rand((3, *value.shape), generator=generator, dtype=torch.float64)
    first, last = (_inside(end, low, high, value.dtype) for end in (low, high))
    drawn = least * (most / least) ** place
    drawn = torch.where((sign < 0.5) & (low < 0) | (high <= 0), -drawn, drawn)
    drawn = drawn.to(value.dtype).clamp(first, last)
    chosen = (drawn.abs() <= most) & ((fate < SMALL_SHARE) | (fate == fate.min()))
    replaced = torch.where(chosen, drawn, value)
    if limits is None or not with_ends:
        return replaced
    ends = torch.where(sign < 0.5, torch.full_like(value, first), last)
    return torch.where((fate > 1 - END_SHARE) | (fate == fate.max()), ends, replaced)


def all_small(
    value: torch.Tensor, limits: tuple[float, float] | None, generator: torch.Generator
) -> torch.Tensor:
    """Returns a tensor of small magnitudes with the signs of another one.

    Args:
        value: Floating-point numbers.
        limits: The least and the largest legal value; None if all are legal.
        generator: The only source of randomness.
    """
    low, high = limits or (-1.0, 1.0)
    first, last = (_inside(end, low, high, value.dtype) for end in (low, high))
    levels = torch.tensor(SMALL_LEVELS, dtype=torch.float64)
    drawn = levels[torch.randint(len(levels), value.shape, generator=generator)]
    negative = (value < 0) & (low < 0) | torch.tensor(high <= 0)
    return torch.where(negative, -drawn, drawn).to(value.dtype).clamp(first, last)


def with_end(
    value: torch.Tensor, limits: tuple[float, float], generator: torch.Generator
) -> torch.Tensor:
    """Returns a tensor that holds an end of its range.

    Weights are often drawn smaller the more terms a sum has, and normal values seldom come to the
    end of a range that leaves room for their tails. One value of the end overflows no sum.

    Args:
        value: Floating-point numbers.
        limits: The least and the largest legal value.
        generator: The only source of randomness.
    """
    low, high = limits
    end = max(limits, key=abs)
    place = int(torch.randint(value.numel(), (), generator=generator))
    changed = value.clone(memory_format=torch.contiguous_format)
    changed.view(-1)[place] = _inside(end, low, high, value.dtype)
    return changed


def over_range(
    value: torch.Tensor, limits: tuple[float, float], generator: torch.Generator
) -> torch.Tensor:
    """Returns a tensor of which half is drawn from a range, with both ends of it.

    Args:
        value: Floating-point numbers. A single element becomes the end with the larger magnitude.
        limits: The least and the largest legal value.
        generator: The only source of randomness.
    """
    if not value.numel():
        return value
    low, high = limits
    ends = [_inside(end, low, high, value.dtype) for end in limits]
    drawn = replace_by_range(value, low, high, generator).clamp(*ends).contiguous()
    place = int(torch.randint(value.numel(), (), generator=generator))
    for back, end in enumerate(sorted(ends, key=abs)[-value.numel() :][::-1]):
        drawn.view(-1)[place - back] = end
    return drawn


def is_far(value: torch.Tensor, limits: tuple[float, float]) -> bool:
    """Whether a tensor with values comes nowhere near the ends of its range."""
    if value.is_meta or not value.numel():
        return False
    return float(value.abs().max()) < NEAR_END * max(map(abs, limits))


def _inside(end: float, low: float, high: float, dtype: torch.dtype) -> float:
    """Returns the value of a type that is nearest to an end of a range, and within the range."""
    near = torch.tensor(end, dtype=dtype, device="cpu")
    if not low <= float(near) <= high:
        near = torch.nextafter(near, torch.tensor((low + high) / 2, dtype=dtype, device="cpu"))
    return float(near)
