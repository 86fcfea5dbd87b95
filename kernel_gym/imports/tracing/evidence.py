"""Statistics of the values that a user's module starts with.

A real build fills reserved memory with NaN, so that a parameter which no line writes is `unset`.
"""

from __future__ import annotations

from typing import TypedDict

import torch

from kernel_gym.imports.tracing.built import Built


class Spread(TypedDict, total=False):
    """Statistics of a value: all entries, or none where the value has no such statistics."""

    unset: bool
    """Whether it holds NaN: memory that was only reserved."""
    mean: float
    std: float
    least: float
    most: float
    shape: list[int]
    constant: bool


def spreads(built: Built) -> dict[str, Spread]:
    """Returns mean, standard deviation, least and largest element of each value."""
    statistics: dict[str, Spread] = {}
    for name, value in built.values.items():
        if not value.numel() or value.is_complex():
            continue
        wide = value.detach().double()
        if unset := bool(wide.isnan().any()):
            wide = torch.zeros_like(wide)
        statistics[name] = {
            "unset": unset,
            "mean": float(wide.mean()),
            "std": float(wide.std(correction=0)),
            "least": float(wide.min()),
            "most": float(wide.max()),
            "shape": list(value.shape),
            "constant": _constant(wide),
        }
    return statistics


def _constant(value: torch.Tensor) -> bool:
    """Whether all elements are equal."""
    return bool((value == value.reshape(-1)[0]).all())
