"""Mish."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from kernel_gym.tasks.distributions import draw
from kernel_gym.tasks.problem import (
    Axis,
    Dims,
    Output,
    Problem,
    TensorArg,
    Value,
    points,
)
from kernel_gym.tasks.workload import Workload


class Mish(Problem):
    """`x tanh(log(1 + exp(x)))`, element by element."""

    name = "mish"
    summary = "Mish: x * tanh(log(1 + exp(x)))"
    category = "Activation"
    level = 2
    tags = ("vision", "memory-bound")
    source = "stages of CSPDarknet53, the backbone of YOLOv4, at 608 x 608"

    args = (TensorArg("x", torch.float16, shape="rows, cols"),)
    outputs = (Output("out", torch.float16, shape="rows, cols"),)
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 1, 1 << 19))
    train = points(
        "rows cols",
        full=[(256, 92416), (512, 23104), (2048, 5776), (4096, 1444), (64, 369664)],
        sim=[(3, 92416), (8, 23104), (40, 5776), (128, 1444)],
    )
    production = points(
        "rows cols",
        full=[(8192, 361), (512, 43264), (2048, 10816)],
        sim=[(512, 361), (4, 43264), (20, 10816)],
    )
    adversarial = ({"rows": 3, "cols": 1},)
    distributions = ("normal", "large", "tiny", "structured")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x float16[rows, cols]."""
        shape = (workload.dims["rows"], workload.dims["cols"])
        return {"x": draw(shape, torch.float16, workload.distribution, generator)}

    def oracle(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """By log1p of an exponential that does not overflow."""
        y = x.double()
        return (y * torch.tanh(y.clamp(min=0) + torch.log1p(torch.exp(-y.abs()))),)

    def reference(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (F.mish(x),)

    def flops(self, dims: Dims) -> int:
        """Exponential, add, logarithm, hyperbolic tangent and product for each element."""
        return 5 * self.elements(dims)


PROBLEM = Mish()
