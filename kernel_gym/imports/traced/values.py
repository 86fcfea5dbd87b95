"""Draws values for traced problems, in place of the random functions of PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch

from kernel_gym.tasks.distributions import draw

Shape = list[int] | tuple[int, ...]


def normal(
    shape: Shape, dtype: torch.dtype, distribution: str, generator: torch.Generator
) -> torch.Tensor:
    """Draws in place of `torch.randn`, by the distribution of the workload."""
    return draw(tuple(shape), dtype, distribution, generator)


_UNIT: Mapping[str, Callable[[torch.Tensor, torch.Generator], torch.Tensor]] = {
    "tiny": lambda u, g: u * 1e-3,
    "heavy_tail": lambda u, g: u**8,
    "sparse": lambda u, g: u * (torch.rand(u.shape, generator=g) < 0.1),
    "constant_rows": lambda u, g: u[..., :1].expand(u.shape).clone() if u.dim() else u,
    "offset": lambda u, g: 0.75 + u / 4,
}


def unit(
    shape: Shape, dtype: torch.dtype, distribution: str, generator: torch.Generator
) -> torch.Tensor:
    """Draws in place of `torch.rand`: always from 0 to 1, in a way that fits the distribution."""
    drawn = torch.rand(tuple(shape), generator=generator)
    change = _UNIT.get(distribution)
    return (change(drawn, generator) if change else drawn).to(dtype)


def whole(
    low: int,
    high: int,
    shape: Shape,
    dtype: torch.dtype,
    distribution: str,
    generator: torch.Generator,
) -> torch.Tensor:
    """Draws in place of `torch.randint`: `low <= value < high` for every distribution.

    "heavy_tail" prefers low values, "sparse" repeats the lowest one.
    """
    part = torch.rand(tuple(shape), generator=generator, dtype=torch.float64)
    if distribution == "heavy_tail":
        part = part**4
    elif distribution == "sparse":
        part = part * (torch.rand(part.shape, generator=generator) < 0.5)
    return (low + (part * (high - low)).floor()).clamp(low, high - 1).to(dtype)


def around(
    mean: float, spread: float, shape: Shape, dtype: torch.dtype, generator: torch.Generator
) -> torch.Tensor:
    """Draws a parameter around a value, so that no weight is one and no bias is zero."""
    return (mean + spread * torch.randn(tuple(shape), generator=generator)).to(dtype)


def positive(shape: Shape, dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Draws a variance, from 0.5 to 1.5."""
    return (0.5 + torch.rand(tuple(shape), generator=generator)).to(dtype)


def weight(
    gain: float, shape: Shape, dtype: torch.dtype, generator: torch.Generator
) -> torch.Tensor:
    """Draws a weight [out, in, ...] with a standard deviation of gain / sqrt(in * ...)."""
    spread = gain / math.sqrt(max(1, math.prod(tuple(shape)[1:])))
    return (spread * torch.randn(tuple(shape), generator=generator)).to(dtype)
