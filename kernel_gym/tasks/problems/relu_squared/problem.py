"""Squared ReLU."""

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


class ReluSquared(Problem):
    """`max(x, 0)^2`, element by element."""

    name = "relu_squared"
    summary = "squared ReLU: max(x, 0)^2"
    category = "Activation"
    level = 1
    tags = ("decoder-llm", "state-space", "memory-bound")
    source = "feed-forward layers of Nemotron-4-15B, Minitron-4B and the channel mix of RWKV-6-7B"

    args = (TensorArg("x", torch.bfloat16, shape="rows, cols"),)
    outputs = (Output("out", torch.bfloat16, shape="rows, cols"),)
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 1, 1 << 17))
    train = points(
        "rows cols",
        full=[(4096, 24576), (8192, 9216), (4096, 14336), (16384, 3584), (32, 24576)],
        sim=[(16, 24576), (32, 9216), (20, 14336), (128, 3584)],
    )
    production = points(
        "rows cols",
        full=[(2048, 73728), (8192, 7168), (4096, 21504)],
        sim=[(48, 7168), (12, 21504), (64, 4096)],
    )
    adversarial = ({"rows": 3, "cols": 1},)
    distributions = ("normal", "large", "tiny", "sparse")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x bfloat16[rows, cols]."""
        shape = (workload.dims["rows"], workload.dims["cols"])
        return {"x": draw(shape, torch.bfloat16, workload.distribution, generator)}

    def oracle(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Clamp, then square."""
        return (x.double().clamp(min=0).square(),)

    def reference(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Two PyTorch calls."""
        return (torch.square(F.relu(x)),)

    def flops(self, dims: Dims) -> int:
        """Compare and multiply for each element."""
        return 2 * self.elements(dims)


PROBLEM = ReluSquared()
