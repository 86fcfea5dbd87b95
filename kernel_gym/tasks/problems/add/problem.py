"""Sum of two vectors, laid out as matrices."""

from __future__ import annotations

import torch

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


class Add(Problem):
    """`out = x + y`, element by element."""

    name = "add"
    summary = "elementwise sum of two matrices"
    category = "Math"
    level = 1
    tags = ("decoder-llm", "vision", "memory-bound")
    source = "residual connections of Llama-2-7B, Llama-3-70B, GPT-2, ViT-B and ResNet-50"

    args = (
        TensorArg("x", torch.float16, shape="rows, cols"),
        TensorArg("y", torch.float16, shape="rows, cols"),
    )
    outputs = (Output("out", torch.float16, shape="rows, cols"),)
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 1, 1 << 17))
    train = points(
        "rows cols",
        full=[(8192, 4096), (4096, 8192), (16384, 768), (16384, 3136), (64, 4096)],
        sim=[(64, 4096), (32, 8192), (256, 768), (80, 3136)],
    )
    production = points(
        "rows cols",
        full=[(8192, 5120), (4096, 7168), (25216, 768)],
        sim=[(48, 5120), (36, 7168), (197, 768)],
    )
    adversarial = ({"rows": 3, "cols": 1},)
    distributions = ("normal", "large", "tiny", "sparse")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x and y, float16[rows, cols]."""
        shape = (workload.dims["rows"], workload.dims["cols"])
        return {
            name: draw(shape, torch.float16, workload.distribution, generator)
            for name in ("x", "y")
        }

    def oracle(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        return (x.double() + y.double(),)

    def reference(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (torch.add(x, y),)

    def flops(self, dims: Dims) -> int:
        """One addition for each element."""
        return self.elements(dims)


PROBLEM = Add()
