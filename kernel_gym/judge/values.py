"""Are the values right? Every element, against the fp64 oracle (rules 5-7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from kernel_gym.judge.protocol import (
    CANCELLED_LEG,
    MAX_LEG,
    RMS_LEG,
    ROW_BLOCK,
    SINGLE_ROUNDINGS,
    UNIFORM_ROUNDING_RMS,
)
from kernel_gym.records import Element

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
    wrong_class = _class_mismatch(found, expected)
    if wrong_class.any():
        return _report(name, wrong_class, found, expected, 0.0, "NaN or Inf where it must not be")
    finite = torch.isfinite(expected)
    y, y_hat, y_ref = (
        _rows(torch.where(finite, t.double(), 0.0)) for t in (expected, found, reference)
    )
    error, ref_error = (y_hat - y).abs(), (y_ref - y).abs()
    unit = torch.finfo(found.dtype).eps / 2 * ROUNDINGS.get(found.dtype, 1)
    floor = _smallest_rounding(found.dtype)
    largest = _yardstick(ref_error.amax(1), y.abs().amax(1), unit).clamp(min=floor)
    typical = _yardstick(_rms(ref_error), _rms(y), UNIFORM_ROUNDING_RMS * unit).clamp(min=floor)
    max_ratio = error.amax(1) / (MAX_LEG * largest)
    rms_ratio = _rms(error) / (RMS_LEG * typical)
    worst = float(torch.maximum(max_ratio, rms_ratio).max())
    if worst <= 1.0:
        return Comparison(True, worst)
    row = int(torch.maximum(max_ratio, rms_ratio).argmax())
    flat = row * y.shape[1] + int(error[row].argmax())
    tolerance = float(MAX_LEG * largest[row])
    share = float((torch.maximum(max_ratio, rms_ratio) > 1).double().mean())
    leg = "largest" if max_ratio[row] >= rms_ratio[row] else "rms"
    text = f"{leg} error {worst:.3g} times the tolerance; {share:.1%} of the rows are wrong"
    return _at(name, flat, found, expected, tolerance, worst, text)


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
    largest = unit * _rows(expected.double().nan_to_num(posinf=0.0, neginf=0.0)).abs().amax(1)
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


def _smallest_rounding(dtype: torch.dtype) -> float:
    """Error that the format itself forces near zero: half a subnormal step.

    Not less than float32's smallest normal number: kernels may flush float32 subnormals to zero.
    """
    info = torch.finfo(dtype)
    return max(info.tiny * info.eps / 2, torch.finfo(torch.float32).tiny)


def _rms(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.square().mean(1).sqrt()


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
