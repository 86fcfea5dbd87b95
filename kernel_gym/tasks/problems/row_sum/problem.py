"""Sum of each row."""

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


class RowSum(Problem):
    """`out[i] = x[i, 0] + ... + x[i, cols - 1]`, accumulated in float32."""

    name = "row_sum"
    summary = "sum of each row, accumulated in float32"
    category = "Reduce-and-scan"
    level = 1
    tags = ("decoder-llm", "vision", "recommender", "memory-bound", "reduction")
    source = "bias gradients of Llama-2-7B, GPT-2 and ViT-L (transposed), channel sums of ResNet-50"

    args = (TensorArg("x", torch.bfloat16, shape="rows, cols"),)
    outputs = (Output("out", torch.bfloat16, shape="rows"),)
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 1, 1 << 20))
    train = points(
        "rows cols",
        full=[(4096, 8192), (768, 65536), (1024, 50432), (65536, 1024), (16384, 3136)],
        sim=[(64, 8192), (8, 65536), (512, 1024), (160, 3136)],
    )
    production = points(
        "rows cols",
        full=[(3072, 16384), (2048, 25088), (131072, 196)],
        sim=[(24, 16384), (16, 25088), (2000, 196)],
    )
    adversarial = ({"rows": 3, "cols": 1},)
    distributions = ("normal", "offset", "heavy_tail", "sparse")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x bfloat16[rows, cols]."""
        shape = (workload.dims["rows"], workload.dims["cols"])
        return {"x": draw(shape, torch.bfloat16, workload.distribution, generator)}

    def oracle(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        return (x.double().sum(1),)

    def reference(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One PyTorch call, accumulated in float32."""
        return (torch.sum(x, dim=1),)

    def flops(self, dims: Dims) -> int:
        """One addition for each element."""
        return self.elements(dims)


PROBLEM = RowSum()
