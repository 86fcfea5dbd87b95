"""Average pooling: windows of three at stride one, edges counted by what lies inside."""

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


class AvgPool2d(Problem):
    """The mean of the part of each 3 x 3 window that lies inside the plane."""

    name = "avg_pool2d"
    summary = "mean of the 3 x 3 window around each pixel, without the places outside"
    category = "Pooling"
    level = 2
    tags = ("vision", "memory-bound", "stencil")
    source = "pooling branches of Inception-v3, token mixers of PoolFormer-S12 at 224 x 224"

    args = (TensorArg("x", torch.float16, shape="planes, height, width"),)
    outputs = (Output("out", torch.float16, shape="planes, height, width"),)
    axes = (Axis("planes", 1, 1 << 20), Axis("height", 1, 4096), Axis("width", 1, 4096))
    train = points(
        "planes height width",
        full=[(8192, 56, 56), (24576, 35, 35), (49152, 17, 17), (16384, 28, 28), (65536, 14, 14)],
        sim=[(40, 56, 56), (100, 35, 35), (400, 17, 17), (160, 28, 28)],
    )
    production = points(
        "planes height width",
        full=[(131072, 8, 8), (4096, 96, 96), (2048, 112, 112)],
        sim=[(1500, 8, 8), (12, 96, 96), (10, 112, 112)],
    )
    adversarial = ({"planes": 3, "height": 1, "width": 2},)
    distributions = ("normal", "offset", "structured", "heavy_tail")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x float16[planes, height, width]."""
        shape = (workload.dims["planes"], workload.dims["height"], workload.dims["width"])
        return {"x": draw(shape, torch.float16, workload.distribution, generator)}

    def oracle(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Sums of nine shifted views, over such sums of ones."""

        def window_sum(plane: torch.Tensor) -> torch.Tensor:
            high = F.pad(plane, (0, 0, 1, 1))
            tall = high[:, :-2] + high[:, 1:-1] + high[:, 2:]
            wide = F.pad(tall, (1, 1))
            return wide[:, :, :-2] + wide[:, :, 1:-1] + wide[:, :, 2:]

        return (window_sum(x.double()) / window_sum(torch.ones_like(x[:1]).double()),)

    def reference(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (F.avg_pool2d(x[:, None], 3, 1, 1, count_include_pad=False)[:, 0],)

    def flops(self, dims: Dims) -> int:
        """Four additions (by rows, then by columns) and a product for each element."""
        return 5 * self.elements(dims)


PROBLEM = AvgPool2d()
