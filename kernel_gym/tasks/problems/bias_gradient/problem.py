"""Gradient of a bias: sums of columns."""

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
from kernel_gym.tasks.yardsticks import column_sums, farthest


class BiasGradient(Problem):
    """`out[c] = sum over r of x[r, c]`: few results, each a sum across many rows."""

    name = "bias_gradient"
    summary = "sum of each column of a bfloat16 matrix, accumulated and returned in float32"
    category = "Reduce-and-scan"
    level = 2
    tags = ("decoder-llm", "vision", "training", "memory-bound", "reduction")
    source = "biases of GPT-2, GPT-2-XL, BERT-large and ViT-L/16 in training; of DiT-XL/2"

    args = (TensorArg("x", torch.bfloat16, shape="rows, cols"),)
    outputs = (Output("out", torch.float32, shape="cols"),)
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 1, 1 << 17))
    train = points(
        "rows cols",
        full=[(16384, 768), (16384, 3072), (25216, 1024), (8192, 4096), (65536, 1152)],
        sim=[(512, 768), (256, 1024), (128, 3072), (1024, 384)],
    )
    production = points(
        "rows cols",
        full=[(8192, 6400), (16384, 2304), (131072, 512)],
        sim=[(128, 1600), (192, 2304), (2048, 128)],
    )
    adversarial = ({"rows": 1, "cols": 3}, {"rows": 131, "cols": 1})
    distributions = ("normal", "offset", "tiny", "structured")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x bfloat16[rows, cols]."""
        shape = (workload.dims["rows"], workload.dims["cols"])
        return {"x": draw(shape, torch.bfloat16, workload.distribution, generator)}

    def oracle(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        return (x.double().sum(0),)

    def reference(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (torch.sum(x, dim=0, dtype=torch.float32),)

    def yardstick(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The reference, and other orders of the sum."""
        return (farthest(self.oracle(x)[0], (*self.reference(x), *column_sums(x.float()))),)

    def flops(self, dims: Dims) -> int:
        """An addition for each element."""
        return self.elements(dims)


PROBLEM = BiasGradient()
