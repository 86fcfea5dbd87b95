"""Are the values right? Every element, against the fp64 oracle (rules 5-7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from kernel_gym.judge.protocol import (
    CANCELLED_LEG,
    MAX_LEG,
    RMS_LEG,
    ROW_BLOCK,
    SINGLE_ROUNDINGS,
    TAIL_ROWS,
    UNIFORM_ROUNDING_RMS,
)
from kernel_gym.records import Element

CHUNK = 1 << 25
"""Most elements that are compared at one time."""
ROUNDINGS = {torch.float32: SINGLE_ROUNDINGS, torch.float64: SINGLE_ROUNDINGS}
"""Roundings that a sum may gather before the output's own, in formats that sums are made in."""


@dataclass(frozen=True)
class Comparison:
    """The verdict on one output. `worst` is the error over its tolerance: 1.0 is the limit."""

    passed: bool
    worst: float
    message: str = ""
    element: Element | None = None


def compare_close(
    name: str, found: torch.Tensor, expected: torch.Tensor, reference: torch.Tensor
) -> Comparison:
    """Two-legged tolerance by rows of at most 4096 outputs (rule 7).

    Args:
        name: of the output.
        found: the candidate's values, in the task's dtype.
        expected: the oracle's, fp64, same shape.
        reference: those of plain PyTorch in the task's dtype, the yardstick of rounding.
    """
    if found.numel() == 0:
        return Comparison(True, 0.0)
    rows = tuple(_rows(t) for t in (expected, found, reference))
    parts = [_measure(*chunk) for chunk in zip(*(_chunks(t) for t in rows), strict=True)]
    if any(part.wrong_class for part in parts):
        wrong = _class_mismatch(found, expected)
        return _report(name, wrong, found, expected, 0.0, "NaN or Inf where it must not be")
    of_y, of_error, of_reference = (
        tuple(torch.cat(column) for column in zip(*sizes, strict=True))
        for sizes in zip(*((p.of_y, p.of_error, p.of_reference) for p in parts), strict=True)
    )
    unit = torch.finfo(found.dtype).eps / 2 * ROUNDINGS.get(found.dtype, 1)
    least = [_least_error(sizes, found.dtype) for sizes in of_y]
    largest = _yardstick(of_reference[0], of_y[0], unit).clamp(min=least[0])
    typical = _yardstick(of_reference[1], of_y[1], UNIFORM_ROUNDING_RMS * unit).clamp(min=least[1])
    max_ratio = of_error[0] / (MAX_LEG * largest)
    rms_ratio = _by_rms(of_error[1] / typical)
    worst = float(torch.maximum(max_ratio, rms_ratio).max())
    if worst <= 1.0:
        return Comparison(True, worst)
    row = int(torch.maximum(max_ratio, rms_ratio).argmax())
    flat = row * rows[0].shape[1] + _worst_of_row(rows[0][row], rows[1][row])
    tolerance = float(MAX_LEG * largest[row])
    share = float((torch.maximum(max_ratio, rms_ratio) > 1).double().mean())
    leg = "largest" if max_ratio[row] >= rms_ratio[row] else "rms"
    text = f"{leg} error {worst:.3g} times the tolerance; {share:.1%} of the rows are wrong"
    return _at(name, flat, found, expected, tolerance, worst, text)


class _Measured(NamedTuple):
    """Some rows: the largest magnitude and the root mean square of each."""

    wrong_class: bool
    of_y: tuple[torch.Tensor, torch.Tensor]
    of_error: tuple[torch.Tensor, torch.Tensor]
    of_reference: tuple[torch.Tensor, torch.Tensor]


def _measure(expected: torch.Tensor, found: torch.Tensor, reference: torch.Tensor) -> _Measured:
    """Measures some rows of the oracle, and of the errors of a candidate and of the reference."""
    finite = torch.isfinite(expected)
    y, wrong_class = expected.double(), False
    if found.itemsize == 1 or not bool(finite.all() & torch.isfinite(found).all()):
        wrong_class = bool(_class_mismatch(found, expected).any())
        y = torch.where(finite, y, 0.0)
        found, reference = (torch.where(finite, t.double(), 0.0) for t in (found, reference))
    return _Measured(wrong_class, _sizes(y), _sizes(found.sub(y)), _sizes(reference.sub(y)))


def _sizes(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Of each row the largest magnitude and the root mean square, each in one pass over it."""
    least, most = values.aminmax(dim=1)
    rms = torch.linalg.vector_norm(values, dim=1) / values.shape[1] ** 0.5
    return torch.maximum(-least, most), rms


def _by_rms(ratios: torch.Tensor) -> torch.Tensor:
    """Ratios of root mean squares over their limit, which is wider for the few largest of many."""
    limits = torch.full_like(ratios, RMS_LEG)
    limits[ratios.topk(int(TAIL_ROWS * len(ratios))).indices] = MAX_LEG
    return ratios / limits


def _worst_of_row(expected: torch.Tensor, found: torch.Tensor) -> int:
    error = torch.where(torch.isfinite(expected), found.double() - expected.double(), 0.0)
    return int(error.abs().argmax())


def _chunks(rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Some rows at a time: in fp64 all of them together would take many times their memory."""
    return rows.split(max(1, CHUNK // max(1, rows.shape[1])))


def _yardstick(error: torch.Tensor, size: torch.Tensor, unit: float) -> torch.Tensor:
    """The error to expect of a row: the reference's there, its usual one, or the format's.

    A single row's error of the reference is a sample, and may be small by luck; medians over all
    rows are not. Where a row's values cancel, errors do not: there the usual error counts as such,
    within thrice what it is relative to the size of rows.

    Args:
        error: of the reference by row.
        size: of the oracle's values by row.
        unit: relative error of one rounding.
    """
    relative = (error / size.clamp(min=torch.finfo(size.dtype).tiny)).median()
    usual = error.median().clamp(relative * size, CANCELLED_LEG * relative * size)
    return torch.maximum(torch.maximum(error, usual), unit * size)


def compare_exact(name: str, found: torch.Tensor, expected: torch.Tensor) -> Comparison:
    """Equality, element by element."""
    return compare_mask(name, found != expected, found, expected)


def compare_mask(
    name: str, wrong: torch.Tensor, found: torch.Tensor, expected: torch.Tensor
) -> Comparison:
    """A verdict from a mask of the wrong elements."""
    if not wrong.any():
        return Comparison(True, 0.0)
    share = float(wrong.double().mean())
    return _report(name, wrong, found, expected, 0.0, f"{share:.1%} of the elements are wrong")


def same_twice(first: torch.Tensor, second: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether two results on the same data differ by no more than rounding (rule 9).

    Args:
        first: of one call.
        second: of the other.
        expected: the oracle's values, which set the scale of a row.
    """
    if torch.equal(first, second) or not first.dtype.is_floating_point:
        return torch.equal(first, second)
    if _class_mismatch(second, first.double()).any():
        return False
    moved = _rows(torch.where(torch.isfinite(first), (second.double() - first.double()).abs(), 0.0))
    unit = torch.finfo(first.dtype).eps / 2
    sizes = _rows(expected.double().nan_to_num(posinf=0.0, neginf=0.0)).abs().amax(1)
    largest = (unit * sizes).clamp(min=_least_error(sizes, first.dtype))
    return bool((moved.amax(1) <= MAX_LEG * largest).all())


def share_right(found: Sequence[torch.Tensor | None], expected: Sequence[torch.Tensor]) -> float:
    """Share of the non-zero expected elements that are there up to a rounding, over all outputs.

    Zeros do not count: an output may be filled with them before a kernel writes the rest.
    """
    right = total = 0
    for tensor, oracle in zip(found, expected, strict=True):
        matters = (oracle != 0) & ~torch.isnan(oracle)
        if tensor is None or not matters.any():
            continue
        unit = torch.finfo(tensor.dtype).eps if tensor.dtype.is_floating_point else 0.0
        near = (tensor.double() - oracle.double()).abs() <= unit * oracle.double().abs()
        right += int((near & matters).sum())
        total += int(matters.sum())
    return right / total if total else 0.0


def _class_mismatch(found: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    nan = torch.isnan(found) != torch.isnan(expected)
    infinite = torch.isinf(found) | torch.isinf(expected)
    return nan | (infinite & (found.double() != expected) & ~torch.isnan(expected))


def _rows(tensor: torch.Tensor) -> torch.Tensor:
    """Reshapes to (rows, columns): the last dimension, or blocks of it, pooled when it is short."""
    columns = tensor.shape[-1] if tensor.dim() else 1
    if columns < 32:
        columns = tensor.numel()
    if columns > ROW_BLOCK:
        blocks = -(-columns // ROW_BLOCK)
        width = -(-columns // blocks)
        rows = tensor.reshape(-1, columns)
        padded = torch.nn.functional.pad(rows, (0, blocks * width - columns))
        return padded.reshape(-1, width)
    return tensor.reshape(-1, columns)


def _least_error(sizes: torch.Tensor, dtype: torch.dtype) -> float:
    """Error to expect of the smallest row: what the format forces, and what fp32 sums leave there.

    Their error goes by their terms. Where terms cancel, or a ReLU leaves but the end of a value or
    two, a row's size says nothing of them; that of the usual row does. In fp32 and beyond it would
    excuse too much.

    Args:
        sizes: of all rows of the oracle's values.
        dtype: of the output.
    """
    single = torch.finfo(torch.float32)
    there = sizes[sizes > 0]
    if torch.finfo(dtype).eps <= single.eps or not len(there):
        return _smallest_rounding(dtype)
    left = SINGLE_ROUNDINGS * single.eps / 2 * float(there.median())
    return max(_smallest_rounding(dtype), left)


def _smallest_rounding(dtype: torch.dtype) -> float:
    """Error that the format itself forces near zero: half a subnormal step.

    Not less than float32's smallest normal number: kernels may flush float32 subnormals to zero.
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
) -> Comparison:
    flat = int(wrong.reshape(-1).to(torch.uint8).argmax())
    return _at(name, flat, found, expected, tolerance, float("inf"), text)


def _at(
    name: str,
    flat: int,
    found: torch.Tensor,
    expected: torch.Tensor,
    tolerance: float,
    worst: float,
    text: str,
) -> Comparison:
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(flat), found.shape))
    element = Element(
        output=name,
        index=index,
        expected=float(expected[index]),
        found=float(found[index]),
        tolerance=tolerance,
    )
    return Comparison(False, worst, text, element)
