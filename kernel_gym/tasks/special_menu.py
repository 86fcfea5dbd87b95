"""The menu of special values: what each tensor of a problem holds in one workload, or excludes.

The entries depend on the dtype and on the stated range alone. A problem takes each of them unless
`[excluded]` of its `ranges.toml` names the tensor; prompts state what is excluded. An entry that
`Problem.inputs` has not drawn anyway is written into some rows of the tensor. Rows lie along the
last axis; a tensor with less than eight rows, or with rows of less than four elements, has eight
equal parts instead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from types import MappingProxyType

import torch

from kernel_gym.tasks.problem import TensorArg

Limits = tuple[int | float, int | float]
MIN_ROWS = 8
"""Least rows of a tensor whose rows hold the entries; others are cut into this number of parts."""
MIN_ROW_ELEMENTS = 4


class SpecialValue(StrEnum):
    """An entry of the menu."""

    EQUAL = "equal"
    LARGEST = "largest"
    SUBNORMAL = "subnormal"
    ZEROS = "zeros"
    POSITIVE = "positive"
    NEGATIVE = "negative"
    RUN = "run"
    CODES = "codes"


_ORDER = tuple(SpecialValue)[::-1]
"""The order in which entries are written: all codes come first, which fill the first rows."""
EXCLUSIONS: Mapping[SpecialValue, str] = MappingProxyType(
    {
        SpecialValue.LARGEST: "the largest finite values",
        SpecialValue.SUBNORMAL: "subnormal values",
        SpecialValue.ZEROS: "a row of zeros",
        SpecialValue.POSITIVE: "a row of positive values alone",
        SpecialValue.NEGATIVE: "a row of negative values alone",
        SpecialValue.EQUAL: "equal rows",
        SpecialValue.RUN: "a row of one value",
        SpecialValue.CODES: "some of the codes",
    }
)
"""The words of prompts for an entry that is not legal."""


def menu_of(arg: TensorArg, limits: Limits | None) -> tuple[SpecialValue, ...]:
    """Returns the entries that the dtype and the stated range of a tensor allow.

    Args:
        arg: The tensor.
        limits: Its stated range; None if all finite values of the type are legal.
    """
    if arg.dtype is torch.bool:
        return ()
    low, high = limits or (-1, 1)
    floating, narrow = arg.dtype.is_floating_point, arg.dtype.itemsize == 1
    if not floating and not narrow:
        return (SpecialValue.RUN,)
    signed = arg.dtype is not torch.uint8
    allowed = {
        SpecialValue.LARGEST: floating and not narrow and limits is None,
        SpecialValue.SUBNORMAL: floating and not narrow and low <= 0 <= high,
        SpecialValue.ZEROS: low <= 0 <= high,
        SpecialValue.POSITIVE: signed and high > 0,
        SpecialValue.NEGATIVE: signed and low < 0,
        SpecialValue.EQUAL: "," in arg.shape,
        SpecialValue.RUN: not signed,
        SpecialValue.CODES: narrow,
    }
    return tuple(entry for entry, is_allowed in allowed.items() if is_allowed)


def holds(entry: SpecialValue, value: torch.Tensor, limits: Limits | None = None) -> bool:
    """Whether a tensor has an entry.

    Args:
        entry: The entry.
        value: The tensor.
        limits: Its stated range, which decides which codes are legal.
    """
    if entry is SpecialValue.CODES:
        return set(legal_codes(value.dtype, limits)) <= set(_codes(value).unique().tolist())
    if not value.numel():
        return False
    rows = rows_of(value).double()
    if entry is SpecialValue.EQUAL:
        return _has_equal(rows)
    return bool(_ROWS_HOLD[entry](rows, value.dtype).any())


def with_entries(
    value: torch.Tensor, entries: Collection[SpecialValue], limits: Limits | None
) -> torch.Tensor:
    """Returns a tensor with the entries that it does not have yet, as far as it has enough rows.

    Args:
        value: The tensor; it is not changed.
        entries: The entries that are legal.
        limits: Its stated range.
    """
    if not value.numel() or all(holds(entry, value, limits) for entry in entries):
        return value
    changed = value.clone(memory_format=torch.contiguous_format)
    rows = _HeldRows(changed, limits)
    for entry in sorted(entries, key=_ORDER.index):
        if entry is SpecialValue.CODES:
            _write_codes(changed, legal_codes(value.dtype, limits))
            rows = _HeldRows(changed, limits)
        elif not rows.hold(entry):
            _write_row(rows, entry, entries, limits)
    return changed


class _HeldRows:
    """The rows of a contiguous tensor, and which entries each of them holds.

    A row that is replaced is looked at alone, as looking at all of them takes long.
    """

    def __init__(self, value: torch.Tensor, limits: Limits | None) -> None:
        self.rows = rows_of(value)
        self._value, self._limits = value, limits
        self._held: dict[SpecialValue, torch.Tensor] = {}

    def hold(self, entry: SpecialValue) -> bool:
        """Whether the tensor has an entry, as `holds` says."""
        if entry not in _ROWS_HOLD:
            return holds(entry, self._value, self._limits)
        if entry not in self._held:
            self._held[entry] = _ROWS_HOLD[entry](self.rows.double(), self._value.dtype)
        return bool(self._held[entry].any())

    def put(self, place: int, row: torch.Tensor) -> None:
        """Replaces a row."""
        self.rows[place] = row
        alone = self.rows[place : place + 1].double()
        for entry, held in self._held.items():
            held[place] = _ROWS_HOLD[entry](alone, self._value.dtype)[0]


def _write_row(
    held: _HeldRows,
    entry: SpecialValue,
    entries: Collection[SpecialValue],
    limits: Limits | None,
) -> None:
    """Writes an entry to the last row of a contiguous tensor that no other entry needs.

    The very last row never becomes a run, so that sorted starts of segments stay sorted.
    """
    rows = held.rows
    first = rows[(rows != 0).any(1).int().argmax()].clone()
    needed = [entry, *(other for other in entries if held.hold(other))]
    last = len(rows) - 1 - (entry is SpecialValue.RUN)
    for place in range(last, -1, -1):
        before = rows[place].clone()
        held.put(place, _MAKE[entry](before, first, limits))
        if all(map(held.hold, needed)):
            return
        held.put(place, before)


def _write_codes(value: torch.Tensor, codes: list[int]) -> None:
    """Writes all codes to the begin of a contiguous tensor that is long enough."""
    if value.numel() >= len(codes):
        table = torch.tensor(codes, dtype=torch.uint8, device=value.device)
        value.view(-1)[: len(codes)] = table.view(value.dtype)


def rows_of(value: torch.Tensor) -> torch.Tensor:
    """Returns the rows of a tensor, or its eight parts, as a matrix. It shares a contiguous one."""
    cols = value.shape[-1] if value.dim() > 1 else 0
    if cols >= MIN_ROW_ELEMENTS and value.numel() // cols >= MIN_ROWS:
        return value.reshape(-1, cols)
    size = max(1, value.numel() // MIN_ROWS)
    whole = value.numel() // size * size
    return value.reshape(-1)[:whole].view(-1, size)


def legal_codes(dtype: torch.dtype, limits: Limits | None) -> list[int]:
    """Returns the bytes of an 8-bit type that are finite and within a range; none for others."""
    if dtype.itemsize != 1 or dtype is torch.bool:
        return []
    codes = torch.arange(256, dtype=torch.int32).to(torch.uint8)
    values = codes.view(dtype).double()
    legal = values.isfinite()
    if limits:
        legal &= (values >= limits[0]) & (values <= limits[1])
    return [int(code) for code in codes[legal].tolist()]


def _codes(value: torch.Tensor) -> torch.Tensor:
    return value.contiguous().view(torch.uint8)


def _has_equal(rows: torch.Tensor) -> bool:
    """Whether two rows that are not zero are equal. One that equals the first counts at once."""
    rows = rows[(rows != 0).any(1)]
    if len(rows) and bool((rows[1:] == rows[0]).all(1).any()):
        return True
    _, number, count = torch.unique(_sums_of_bits(rows), return_inverse=True, return_counts=True)
    alike = rows[count[number] > 1]
    if not len(alike):
        return False  # to sort rows takes 25 ms on a GPU, even if there are none
    return len(torch.unique(alike, dim=0)) < len(alike)


def _sums_of_bits(rows: torch.Tensor) -> torch.Tensor:
    """Returns a number for each row of float64, int64 [rows]: equal rows have equal ones."""
    bits = (rows + 0.0).contiguous().view(torch.int64)  # -0.0 is 0.0
    draw = torch.Generator("cpu").manual_seed(0)
    factors = torch.randint(1 << 62, (rows.shape[1],), generator=draw, device="cpu")
    return (bits * factors.to(rows.device)).sum(1)


_ROWS_HOLD: Mapping[SpecialValue, Callable[[torch.Tensor, torch.dtype], torch.Tensor]] = {
    SpecialValue.LARGEST: lambda rows, dtype: (rows.abs() == torch.finfo(dtype).max).any(1),
    SpecialValue.SUBNORMAL: lambda rows, dtype: (
        (rows.abs() < torch.finfo(dtype).tiny) & (rows != 0)
    ).any(1),
    SpecialValue.ZEROS: lambda rows, dtype: (rows == 0).all(1),
    SpecialValue.POSITIVE: lambda rows, dtype: (rows > 0).all(1),
    SpecialValue.NEGATIVE: lambda rows, dtype: (rows < 0).all(1),
    SpecialValue.RUN: lambda rows, dtype: (rows == rows[:, :1]).all(1),
}
"""Tells which rows have an entry, bool [rows]."""


def _largest(row: torch.Tensor, first: torch.Tensor, limits: Limits | None) -> torch.Tensor:
    changed = row.clone()
    changed[0] = torch.finfo(row.dtype).max
    return changed


def _subnormal(row: torch.Tensor, first: torch.Tensor, limits: Limits | None) -> torch.Tensor:
    """Returns eighths of the least normal value, with the signs of the row where both are legal."""
    low, high = limits or (-1, 1)
    sign = torch.where(row < 0, -1.0, 1.0) if low < 0 < high else torch.full_like(row, high > 0)
    sign = torch.where(sign == 0, -1.0, sign)
    return (sign.double() * torch.finfo(row.dtype).tiny / 8).to(row.dtype)


def _one_sign(row: torch.Tensor, limits: Limits | None, sign: int) -> torch.Tensor:
    """Returns the magnitudes of a row with one sign; the largest of them replaces zeros."""
    size = row.double().nan_to_num(0, 0, 0).abs()
    low, high = limits or (-torch.inf, torch.inf)
    end = min(1.0, abs(high if sign > 0 else low) / 2)
    size = torch.where(size == 0, size.amax() if bool(size.any()) else end, size)
    return (sign * size).clamp(low, high).to(row.dtype)


_MAKE: Mapping[
    SpecialValue, Callable[[torch.Tensor, torch.Tensor, Limits | None], torch.Tensor]
] = {
    SpecialValue.LARGEST: _largest,
    SpecialValue.SUBNORMAL: _subnormal,
    SpecialValue.ZEROS: lambda row, first, limits: torch.zeros_like(row),
    SpecialValue.POSITIVE: lambda row, first, limits: _one_sign(row, limits, 1),
    SpecialValue.NEGATIVE: lambda row, first, limits: _one_sign(row, limits, -1),
    SpecialValue.EQUAL: lambda row, first, limits: first.clone(),
    SpecialValue.RUN: lambda row, first, limits: row[:1].expand_as(row).clone(),
}
