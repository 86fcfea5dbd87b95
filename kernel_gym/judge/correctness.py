"""Compares every element of the outputs with the fp64 oracle (rules 5-7)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from kernel_gym.judge.protocol import TOLERANCE
from kernel_gym.records import Element

CHUNK = 1 << 25
"""The most elements that are compared at a time."""
ROUNDINGS = dict.fromkeys((torch.float32, torch.float64), TOLERANCE.fp32_roundings)
"""Roundings that sums may add, by dtype of the output. Other dtypes are rounded at the end."""


@dataclass(frozen=True)
class ValueCheck:
    """The check of one output. `worst` is the error divided by its tolerance: 1.0 is the limit."""

    passed: bool
    worst: float
    message: str = ""
    element: Element | None = None


def compare_close(
    name: str, found: torch.Tensor, expected: torch.Tensor, reference: torch.Tensor
) -> ValueCheck:
    """Checks the largest and the root-mean-square error of rows of at most 4096 values (rule 7).

    Args:
        name: The output's name.
        found: The candidate's values, in the task's dtype.
        expected: The oracle's values, fp64, same shape.
        reference: The values of plain PyTorch in the task's dtype, whose error is the yardstick.
    """
    if found.numel() == 0:
        return ValueCheck(True, 0.0)
    expected = as_stored(expected, found, reference)
    rows = tuple(_rows(t) for t in (expected, found, reference))
    parts = [_measure(*chunk) for chunk in zip(*(_chunks(t) for t in rows), strict=True)]
    if any(part.wrong_class for part in parts):
        wrong = _class_mismatch(found, expected)
        return _report(name, wrong, found, expected, 0.0, "NaN or Inf where it must not be")
    oracle = _join(part.oracle for part in parts)
    error = _join(part.error for part in parts)
    yardstick = _join(part.reference_error for part in parts)
    unit = torch.finfo(found.dtype).eps / 2 * ROUNDINGS.get(found.dtype, 1)
    least_max, least_rms = (_least_error(sizes, found.dtype) for sizes in oracle)
    rms_unit = TOLERANCE.uniform_rms * unit
    largest = _yardstick(yardstick.largest, oracle.largest, unit).clamp(min=least_max)
    typical = _yardstick(yardstick.rms, oracle.rms, rms_unit).clamp(min=least_rms)
    max_ratio = error.largest / (TOLERANCE.max_error * largest)
    rms_ratio = _by_rms(error.rms / typical)
    worst = float(torch.maximum(max_ratio, rms_ratio).max())
    if worst <= 1.0:
        return ValueCheck(True, worst)
    row = int(torch.maximum(max_ratio, rms_ratio).argmax())
    flat = row * rows[0].shape[1] + _worst_of_row(rows[0][row], rows[1][row])
    tolerance = float(TOLERANCE.max_error * largest[row])
    share = float((torch.maximum(max_ratio, rms_ratio) > 1).double().mean())
    leg = "largest" if max_ratio[row] >= rms_ratio[row] else "rms"
    text = f"{leg} error {worst:.3g} times the tolerance; {share:.1%} of the rows are wrong"
    return _at(name, flat, found, expected, tolerance, worst, text)


def as_stored(expected: torch.Tensor, found: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """Returns the oracle's values with infinities where the output's type ends.

    A sum of 70,000 is infinite in float16. Near the end a rounding decides, so an infinite value of
    the candidate is right there. How near is decided by the reference's errors of large values:
    sums of thousands of products err by more than one rounding. Types of one byte have no infinity,
    or none that is common.

    Args:
        expected: The oracle's values, fp64.
        found: The candidate's values, in the output's dtype.
        reference: The values of plain PyTorch in the same dtype.
    """
    if found.itemsize == 1 or not found.dtype.is_floating_point or found.itemsize == 8:
        return expected
    info = torch.finfo(found.dtype)
    least = info.max * (1 - TOLERANCE.max_error * info.eps)
    if expected.amax() <= info.max / 2 and expected.amin() >= -info.max / 2:
        return expected
    slack = max(info.max - least, TOLERANCE.max_error * _error_near(info.max, expected, reference))
    size = expected.abs()
    infinite = torch.copysign(torch.full_like(expected, torch.inf), expected)
    is_near = (size >= info.max - slack) & (found.double() == infinite)
    return torch.where((size > info.max + slack) | is_near, infinite, expected)


def _error_near(end: float, expected: torch.Tensor, reference: torch.Tensor) -> float:
    """Returns the reference's largest error where finite values come near the end of their type."""
    size = expected.abs()
    error = (reference.double() - expected).abs()
    counts = (size >= end / 2) & (size <= end) & torch.isfinite(error)
    return float(torch.where(counts, error, 0.0).amax())


class RowStats(NamedTuple):
    """Two sizes of each row, each a tensor [rows]."""

    largest: torch.Tensor
    """The largest magnitude."""
    rms: torch.Tensor
    """The root mean square."""


class _Measured(NamedTuple):
    """Statistics of some rows."""

    wrong_class: bool
    """Whether there is NaN or Inf where it must not be."""
    oracle: RowStats
    error: RowStats
    """The candidate's errors."""
    reference_error: RowStats


def _join(parts: Iterable[RowStats]) -> RowStats:
    largest, rms = zip(*parts, strict=True)
    return RowStats(torch.cat(largest), torch.cat(rms))


def _measure(expected: torch.Tensor, values: torch.Tensor, reference: torch.Tensor) -> _Measured:
    """Measures some rows of the oracle, and the errors of the candidate and of the reference."""
    y, wrong_class = expected.double(), False
    oracle, error = _row_stats(y), _row_stats(_difference(values, y))
    if values.itemsize == 1 or not bool(torch.isfinite(oracle.largest + error.largest).all()):
        wrong_class = bool(_class_mismatch(values, expected).any())
        finite = torch.isfinite(expected)
        y, values, reference = (
            torch.where(finite, tensor.double(), 0.0) for tensor in (y, values, reference)
        )
        oracle, error = _row_stats(y), _row_stats(values.sub(y))
    return _Measured(wrong_class, oracle, error, _errors_of_reference(reference, y))


def _errors_of_reference(reference: torch.Tensor, expected: torch.Tensor) -> RowStats:
    """Measures the reference's errors. An answer that is not finite says nothing of rounding."""
    difference = _difference(reference, expected)
    error = _row_stats(difference)
    if bool(torch.isfinite(error.largest).all()):
        return error
    return _row_stats(torch.where(torch.isfinite(difference), difference, 0.0))


def _difference(values: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    """Returns values minus fp64 values. Subtracting another dtype takes ten times longer."""
    if values.dtype is torch.float64:
        return values.sub(expected)
    return values.double().sub_(expected)


def _row_stats(values: torch.Tensor) -> RowStats:
    """Returns the statistics of each row of the values, fp64 [rows, columns].

    Both ends alone take a fifth of the time of `aminmax`.
    """
    rms = torch.linalg.vector_norm(values, dim=1) / values.shape[1] ** 0.5
    return RowStats(torch.maximum(-values.amin(dim=1), values.amax(dim=1)), rms)


def _by_rms(ratios: torch.Tensor) -> torch.Tensor:
    """Divides root-mean-square ratios by their limit, which is wider for the largest few."""
    limits = torch.full_like(ratios, TOLERANCE.rms_error)
    limits[ratios.topk(int(TOLERANCE.tail_share * len(ratios))).indices] = TOLERANCE.max_error
    return ratios / limits


def _worst_of_row(expected: torch.Tensor, found: torch.Tensor) -> int:
    error = torch.where(torch.isfinite(expected), found.double() - expected.double(), 0.0)
    return int(error.abs().argmax())


def _chunks(rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Splits rows into chunks, as fp64 copies of all of them would take too much memory."""
    return torch.split(rows, max(1, CHUNK // max(1, rows.shape[1])))


def _yardstick(error: torch.Tensor, size: torch.Tensor, unit: float) -> torch.Tensor:
    """Returns the error to expect in each row, the largest of three estimates.

    The estimates are the reference's error in the row, its usual error, and the rounding error of
    the format. The reference's error in a single row is a sample and may be small by chance, but
    the median over all rows is not. If the values of a row cancel, errors do not cancel. So the
    usual error is absolute, within a factor of three of the usual relative error.

    Args:
        error: The reference's error, [rows].
        size: The size of the oracle's values, [rows].
        unit: The relative error of one rounding.
    """
    relative = (error / size.clamp(min=torch.finfo(size.dtype).tiny)).median()
    usual = error.median().clamp(relative * size, TOLERANCE.cancelled_rows * relative * size)
    return torch.maximum(torch.maximum(error, usual), unit * size)


def compare_exact(name: str, found: torch.Tensor, expected: torch.Tensor) -> ValueCheck:
    """Checks equality, element by element."""
    return compare_mask(name, found != expected, found, expected)


def compare_mask(
    name: str, wrong: torch.Tensor, found: torch.Tensor, expected: torch.Tensor
) -> ValueCheck:
    """Returns the check for a mask of wrong elements."""
    if not wrong.any():
        return ValueCheck(True, 0.0)
    share = float(wrong.double().mean())
    return _report(name, wrong, found, expected, 0.0, f"{share:.1%} of the elements are wrong")


def same_twice(
    first: torch.Tensor, second: torch.Tensor, expected: torch.Tensor, reference: torch.Tensor
) -> bool:
    """Whether two results on the same data differ by rounding errors only (rule 9).

    Atomic additions of many terms have another order in each call.

    Args:
        first: The result of one call.
        second: The result of the other call.
        expected: The oracle's values, which set the scale of a row.
        reference: An honest answer. Two results may differ by a multiple of its error, too.
    """
    if torch.equal(first, second) or not first.dtype.is_floating_point:
        return torch.equal(first, second)
    base, other = first.double(), second.double()
    if _class_mismatch(other, base).any():
        return False
    moved = _rows(torch.where(torch.isfinite(base), (other - base).abs(), 0.0))
    unit = torch.finfo(first.dtype).eps / 2
    exact = expected.double().nan_to_num(posinf=0.0, neginf=0.0)
    sizes = _rows(exact).abs().amax(1)
    error = _rows((reference.double() - exact).abs().nan_to_num(posinf=0.0)).amax(1)
    largest = torch.maximum(unit * sizes, torch.where(torch.isfinite(error), error, 0.0))
    largest = largest.clamp(min=_least_error(sizes, first.dtype))
    return bool((moved.amax(1) <= TOLERANCE.max_error * largest).all())


def share_right(found: Sequence[torch.Tensor | None], expected: Sequence[torch.Tensor]) -> float:
    """Returns the share of non-zero expected elements that are right up to one rounding.

    Zeros do not count, because an output may be filled with zeros before a kernel runs. Nor do
    integers that fresh memory holds, where every bit is set.
    """
    right = total = 0
    for tensor, oracle in zip(found, expected, strict=True):
        matters = (oracle != 0) & ~torch.isnan(oracle)
        if tensor is not None and not (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
            matters &= oracle.to(torch.int64) != _fresh(tensor.dtype)
        if tensor is None or not matters.any():
            continue
        unit = torch.finfo(tensor.dtype).eps if tensor.dtype.is_floating_point else 0.0
        near = (tensor.double() - oracle.double()).abs() <= unit * oracle.double().abs()
        right += int((near & matters).sum())
        total += int(matters.sum())
    return right / total if total else 0.0


def _fresh(dtype: torch.dtype) -> int:
    """Returns the integer of fresh memory; for masks a value that none has."""
    if dtype is torch.bool:
        return -1
    return -1 if dtype.is_signed else torch.iinfo(dtype).max


def _class_mismatch(found: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    # PyTorch has no isinf of fp8 on the CPU
    values = found.double() if found.itemsize == 1 else found
    nan = torch.isnan(values) != torch.isnan(expected)
    infinite = torch.isinf(values) | torch.isinf(expected)
    return nan | (infinite & (found.double() != expected) & ~torch.isnan(expected))


def _rows(tensor: torch.Tensor) -> torch.Tensor:
    """Reshapes to [rows, columns]: the last dimension or blocks of it, or everything if short."""
    columns = tensor.shape[-1] if tensor.dim() else 1
    if columns < 32:
        columns = tensor.numel()
    if columns > TOLERANCE.row_block:
        blocks = -(-columns // TOLERANCE.row_block)
        width = -(-columns // blocks)
        rows = tensor.reshape(-1, columns)
        padded = torch.nn.functional.pad(rows, (0, blocks * width - columns))
        return padded.reshape(-1, width)
    return tensor.reshape(-1, columns)


def _least_error(sizes: torch.Tensor, dtype: torch.dtype) -> float:
    """Returns the least error to expect in any row: of the format near zero, and of fp32 sums.

    The rounding error of a sum scales with the size of its terms, not of its result. If terms
    cancel, or a ReLU zeroes most of a row, the row's own size underestimates the error. So the
    median size of rows is used. For fp32 and fp64 outputs that bound would be too loose.

    Args:
        sizes: The sizes of the oracle's rows, [rows].
        dtype: The output's dtype.
    """
    single = torch.finfo(torch.float32)
    non_zero = sizes[sizes > 0]
    if torch.finfo(dtype).eps <= single.eps or not len(non_zero):
        return _smallest_rounding(dtype)
    of_sums = TOLERANCE.fp32_roundings * single.eps / 2 * float(non_zero.median())
    return max(_smallest_rounding(dtype), of_sums)


def _smallest_rounding(dtype: torch.dtype) -> float:
    """Returns the rounding error of a format near zero: half a subnormal step.

    It is at least float32's smallest normal number, as kernels may flush subnormals to zero.
    """
    info = torch.finfo(dtype)
    return max(info.tiny * info.eps / 2, torch.finfo(torch.float32).tiny)


def _report(
    name: str,
    wrong: torch.Tensor,
    found: torch.Tensor,
    expected: torch.Tensor,
    tolerance: float,
    text: str,
) -> ValueCheck:
    differs = wrong & (found.double() != expected.double())  # a whole row may be marked
    flat = int((differs if differs.any() else wrong).reshape(-1).to(torch.uint8).argmax())
    return _at(name, flat, found, expected, tolerance, float("inf"), text)


def _at(
    name: str,
    flat: int,
    found: torch.Tensor,
    expected: torch.Tensor,
    tolerance: float,
    worst: float,
    text: str,
) -> ValueCheck:
    index = _place(flat, found.shape)
    element = Element(
        output=name,
        index=index,
        expected=float(expected[index]),
        found=float(found[index]),
        tolerance=tolerance,
    )
    return ValueCheck(False, worst, text, element)


def _place(flat: int, shape: Sequence[int]) -> tuple[int, ...]:
    """Returns the index of an element by its number; PyTorch's function imports sympy for it."""
    index: list[int] = []
    for size in reversed(shape):
        flat, at = divmod(flat, size)
        index.append(at)
    return tuple(reversed(index))
