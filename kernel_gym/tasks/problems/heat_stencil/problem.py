"""One step of heat diffusion on a grid: a five-point stencil with sources."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from kernel_gym.tasks.distributions import draw
from kernel_gym.tasks.problem import (
    Axis,
    Dims,
    Output,
    Problem,
    ScalarArg,
    TensorArg,
    Value,
    points,
)
from kernel_gym.tasks.workload import Workload


class HeatStencil(Problem):
    """`out = t + rate (north + south + east + west - 4 t) + power`.

    Beyond an edge of the grid, the value at the edge counts.
    """

    name = "heat_stencil"
    summary = "one step of a heat equation on each grid"
    category = "Math"
    level = 2
    tags = ("simulation", "memory-bound", "stencil")
    source = "HotSpot of the Rodinia suite, Darcy-flow grids of the Fourier neural operator"

    args = (
        TensorArg("t", torch.float32, shape="batch, height, width"),
        TensorArg("power", torch.float32, shape="batch, height, width"),
        ScalarArg("rate", float, values=(0.1, 0.2, 0.05, 0.25)),
    )
    outputs = (Output("out", torch.float32, shape="batch, height, width"),)
    axes = (Axis("batch", 1, 4096), Axis("height", 1, 1 << 14), Axis("width", 1, 1 << 14))
    train = points(
        "batch height width",
        full=[(1, 4096, 4096), (4, 2048, 2048), (16, 1024, 1024), (64, 421, 421), (256, 128, 128)],
        sim=[(1, 512, 512), (3, 256, 256), (1, 421, 421), (16, 85, 85)],
    )
    production = points(
        "batch height width",
        full=[(1, 8192, 4096), (32, 512, 512), (128, 241, 241)],
        sim=[(1, 512, 384), (4, 241, 241), (8, 128, 128)],
    )
    adversarial = ({"batch": 2, "height": 1, "width": 3},)
    distributions = ("normal", "offset", "structured", "uniform")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws t and a normal power, float32[batch, height, width]."""
        shape = (workload.dims["batch"], workload.dims["height"], workload.dims["width"])
        return {
            "t": draw(shape, torch.float32, workload.distribution, generator),
            "power": 0.5 * torch.randn(shape, generator=generator),
            **self.scalars(workload),
        }

    def oracle(self, t: torch.Tensor, power: torch.Tensor, rate: float) -> tuple[torch.Tensor, ...]:
        """With rows and columns shifted by concatenation."""
        x = t.double()
        north = torch.cat([x[:, :1], x[:, :-1]], dim=1)
        south = torch.cat([x[:, 1:], x[:, -1:]], dim=1)
        west = torch.cat([x[:, :, :1], x[:, :, :-1]], dim=2)
        east = torch.cat([x[:, :, 1:], x[:, :, -1:]], dim=2)
        return (x + rate * (north + south + east + west - 4 * x) + power.double(),)

    def reference(
        self, t: torch.Tensor, power: torch.Tensor, rate: float
    ) -> tuple[torch.Tensor, ...]:
        """Slices of a padded grid, in float32."""
        x = F.pad(t[:, None], (1, 1, 1, 1), mode="replicate")[:, 0]
        ring = x[:, :-2, 1:-1] + x[:, 2:, 1:-1] + x[:, 1:-1, :-2] + x[:, 1:-1, 2:]
        return (t + rate * (ring - 4 * t) + power,)

    def flops(self, dims: Dims) -> int:
        """Six additions and two products a point."""
        return 8 * self.elements(dims)


PROBLEM = HeatStencil()
