"""The class of a tensor's values: what fresh values must keep so that a call stays legal."""

from __future__ import annotations

import base64
from typing import TypedDict

import torch

MAX_KEPT_VALUES = 1 << 14
"""Most bytes of integers that are kept as they are."""
MAX_KEPT_ELEMENTS = 32
"""Integers of so few elements are kept: they are lengths and offsets that belong together."""


class DescribedValues(TypedDict, total=False):
    """A class of values, see `class_of`: its kind, and the parameters of that kind."""

    kind: str
    value: float | str
    low: float
    high: float
    mean: float
    deviation: float
    zeros: float
    minus_infinite: float
    nans: float
    whole: bool
    pattern: str
    share: float
    start: int
    distinct: bool
    data: str


class DescribedTensor(TypedDict, total=False):
    """A tensor among the arguments of a call. The last two are known when the call is over."""

    shape: list[int]
    strides: list[int]
    dtype: str
    device: str
    gradient: bool
    shares: int | None
    """The number of an earlier tensor with the same memory."""
    mutated: bool
    values: DescribedValues


def class_of(tensor: torch.Tensor) -> DescribedValues:
    """Describes the values of a tensor.

    Returns:
        `kind` and its parameters: `empty` (never written), `constant`, `float`, `bool`, `kept`
        (integers to use as they are), `range`, `permutation` or `integers`.
    """
    if tensor.numel() == 0:
        return {"kind": "empty"}
    host = tensor.detach().to("cpu")
    if host.dtype is torch.bool:
        return _booleans(host)
    if host.is_floating_point():
        return _floats(host)
    return _integers(host)


def is_linked(form: DescribedTensor) -> bool:
    """Whether a tensor has integers that a call keeps as they are."""
    whole = not form["dtype"].startswith(("float", "bfloat"))
    return whole and form["values"]["kind"] in ("kept", "constant")


def as_they_are(tensor: torch.Tensor) -> DescribedValues | None:
    """Describes integers by their values; None if they are too many."""
    host = tensor.detach().to("cpu")
    if not host.numel():
        return {"kind": "empty"}
    plain = host.to(torch.int64)
    low, high = int(plain.min()), int(plain.max())
    if low == high:
        return {"kind": "constant", "value": low}
    known = _kept(host, low, high)
    return known if known["kind"] == "kept" else None


def without_nan(values: DescribedValues) -> DescribedValues:
    """Returns the class without its share of NaN."""
    return {**values, "nans": 0.0} if values["kind"] == "float" else values


def wider(one: DescribedValues, other: DescribedValues) -> DescribedValues:
    """Returns the class of the wider range, if one of them is a range of real numbers."""
    kinds = {one["kind"], other["kind"]}
    if "float" not in kinds or not kinds <= {"float", "constant"}:
        return one
    ranges = [c for c in (one, other) if c["kind"] == "float"]
    return max(ranges, key=lambda values: values["high"] - values["low"])


def _floats(host: torch.Tensor) -> DescribedValues:
    values = host.to(torch.float64)
    finite = values[torch.isfinite(values)]
    if not finite.numel():
        never = bool(torch.isnan(values).all())
        return (
            {"kind": "empty"}
            if never
            else {"kind": "constant", "value": str(values.flatten()[0].item())}
        )
    low, high = float(finite.min()), float(finite.max())
    whole = finite.numel() == values.numel()
    if low == high and whole:
        return {"kind": "constant", "value": low}
    return {
        "kind": "float",
        "mean": float(finite.mean()),
        "deviation": float(finite.std()) if finite.numel() > 1 else abs(low),
        "low": low,
        "high": high,
        "zeros": float((values == 0).double().mean()),
        "minus_infinite": float(torch.isneginf(values).double().mean()),
        "nans": _nans(host),
        "whole": bool((finite == finite.round()).all()),
        "pattern": _pattern(values),
    }


def _nans(host: torch.Tensor) -> float:
    """The share of NaN. Elements that were never written, with all bits set, do not count."""
    if host.element_size() == 1:
        return 0.0
    bits = host.contiguous().view(getattr(torch, f"int{8 * host.element_size()}"))
    return float((torch.isnan(host) & (bits != -1)).double().mean())


def _pattern(values: torch.Tensor) -> str:
    """How a batch of square matrices is built, or empty."""
    if values.dim() < 2 or values.shape[-1] != values.shape[-2] or values.shape[-1] < 2:
        return ""
    if torch.equal(values, torch.diag_embed(torch.diagonal(values, dim1=-2, dim2=-1))):
        return "diagonal"
    for name, part in (("lower", torch.tril(values)), ("upper", torch.triu(values))):
        if torch.equal(values, part):
            return name
    if values.shape[-1] > 512 or not torch.allclose(values, values.transpose(-1, -2)):
        return ""
    if bool((torch.linalg.eigvalsh(values.nan_to_num()) > 0).all()):
        return "positive"
    return "symmetric"


def _booleans(host: torch.Tensor) -> DescribedValues:
    share = float(host.double().mean())
    if share in (0.0, 1.0):
        return {"kind": "constant", "value": share}
    pattern = _pattern(host.double())
    if host.numel() <= MAX_KEPT_ELEMENTS:
        return _kept(host, 0, 1)
    return {"kind": "bool", "share": share, "pattern": pattern}


def _integers(host: torch.Tensor) -> DescribedValues:
    values = host.to(torch.int64).reshape(-1)
    low, high = int(values.min()), int(values.max())
    if low == high:
        return {"kind": "constant", "value": low}
    rows = host.to(torch.int64).reshape(-1, host.shape[-1] if host.dim() else 1)
    first = rows[:, :1] if rows.shape[1] else rows
    if rows.shape[1] > 1 and torch.equal(rows, first + torch.arange(rows.shape[1])):
        starts = first.flatten()
        if bool((starts == starts[0]).all()):
            return {"kind": "range", "start": int(starts[0]), "low": low, "high": high}
    if values.numel() <= MAX_KEPT_ELEMENTS or _ordered(values):
        return _kept(host, low, high)
    different, counts = torch.unique(values, return_counts=True)
    if different.numel() == values.numel():
        if high - low + 1 == values.numel():
            return {"kind": "permutation", "low": low, "high": high}
        return _kept(host, low, high)
    repeated = different[counts > 1]
    if len(repeated) == 1 and int(repeated[0]) in (low, high):  # an order with padding
        return _kept(host, low, high)
    ordered = rows.sort(dim=1).values
    distinct = rows.shape[1] > 1 and bool((ordered[:, 1:] != ordered[:, :-1]).all())
    return {"kind": "integers", "low": low, "high": high, "distinct": distinct}


def _ordered(values: torch.Tensor) -> bool:
    steps = values[1:] - values[:-1]
    return bool((steps >= 0).all()) or bool((steps <= 0).all())


def _kept(host: torch.Tensor, low: int, high: int) -> DescribedValues:
    data = host.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    if len(data) > MAX_KEPT_VALUES:
        return {"kind": "integers", "low": low, "high": high}
    return {"kind": "kept", "low": low, "high": high, "data": base64.b64encode(data).decode()}
