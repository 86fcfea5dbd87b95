"""Variance and mean of each row."""

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


class VarMean(Problem):
    """`mean[i]` and `variance[i] = sum((x[i, :] - mean[i])^2) / (cols - 1)`."""

    name = "var_mean"
    summary = "unbiased variance and mean of each row, in this order"
    category = "Reduce-and-scan"
    level = 2
    tags = ("vision", "audio", "memory-bound", "reduction")
    source = "batch statistics of ResNet-50 and EfficientNet-B0 by channel, features of wav2vec 2.0"

    args = (TensorArg("x", torch.bfloat16, shape="rows, cols"),)
    outputs = (
        Output("variance", torch.bfloat16, shape="rows"),
        Output("mean", torch.bfloat16, shape="rows"),
    )
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 2, 1 << 21))
    train = points(
        "rows cols",
        full=[(256, 200704), (64, 802816), (2048, 12544), (32768, 1024), (16384, 3200)],
        sim=[(8, 50176), (2, 200704), (40, 12544), (400, 1024)],
    )
    production = points(
        "rows cols",
        full=[(512, 50176), (96, 401408), (8192, 4000)],
        sim=[(6, 65536), (96, 4000), (12, 25088)],
    )
    adversarial = ({"rows": 3, "cols": 2},)
    distributions = ("normal", "offset", "heavy_tail", "uniform")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x bfloat16[rows, cols], rows of different scale and level."""
        rows, cols = workload.dims["rows"], workload.dims["cols"]
        x = draw((rows, cols), torch.float32, workload.distribution, generator)
        scale = 0.5 + torch.rand((rows, 1), generator=generator)
        level = torch.randn((rows, 1), generator=generator)
        return {"x": (x * scale + level).bfloat16()}

    def oracle(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Centre first, then the sum of squares."""
        mean = x.double().mean(1)
        squares = (x.double() - mean[:, None]).square().sum(1)
        return squares / (x.shape[1] - 1), mean

    def reference(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One PyTorch call in float32, rounded once."""
        variance, mean = torch.var_mean(x.float(), dim=1)
        return variance.bfloat16(), mean.bfloat16()

    def flops(self, dims: Dims) -> int:
        """Two additions and a product for each element."""
        return 3 * self.elements(dims)


PROBLEM = VarMean()
