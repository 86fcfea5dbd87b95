"""Average pooling to a given number of cells."""

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


class AdaptiveAvgPool2d(Problem):
    """Splits each side of a plane into n = `num_cells` windows and averages each window.

    Window i of a side of s pixels spans the pixels from `floor(i s / n)` to `ceil((i + 1) s / n) -
    1`. Neighbouring windows may overlap.
    """

    name = "adaptive_avg_pool2d"
    summary = "mean of each of n x n cells of each plane"
    category = "Pooling"
    level = 3
    tags = ("vision", "memory-bound", "reduction")
    source = (
        "heads of ResNet-50, VGG-16 and EfficientNet-B0, pyramid pooling of PSPNet at 713 x 713"
    )

    args = (
        TensorArg("x", torch.float16, shape="planes, height, width"),
        ScalarArg("num_cells", int),
    )
    outputs = (Output("out", torch.float16, shape="planes, num_cells, num_cells"),)
    axes = (
        Axis("planes", 1, 1 << 20),
        Axis("height", 1, 4096),
        Axis("width", 1, 4096),
        Axis("num_cells", 1, 64),
    )
    train = points(
        "planes height width num_cells",
        full=[
            (262144, 7, 7, 1),
            (8192, 90, 90, 6),
            (32768, 14, 14, 7),
            (2048, 256, 256, 1),
            (16384, 60, 60, 3),
        ],
        sim=[(4096, 7, 7, 1), (24, 90, 90, 6), (1000, 14, 14, 7), (60, 60, 60, 3)],
    )
    production = points(
        "planes height width num_cells",
        full=[(131072, 10, 10, 1), (16384, 64, 64, 2), (65536, 16, 20, 7)],
        sim=[(3000, 10, 10, 1), (40, 64, 64, 2), (700, 16, 20, 7)],
    )
    adversarial = ({"planes": 3, "height": 2, "width": 5, "num_cells": 3},)
    distributions = ("normal", "offset", "structured", "heavy_tail")

    def elements(self, dims: Dims) -> int:
        """Elements of x and the output."""
        return dims["planes"] * (dims["height"] * dims["width"] + dims["num_cells"] ** 2)

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x float16[planes, height, width]."""
        shape = tuple(workload.dims[axis] for axis in ("planes", "height", "width"))
        x = draw(shape, torch.float16, workload.distribution, generator)
        return {"x": x, "num_cells": workload.dims["num_cells"]}

    def oracle(self, x: torch.Tensor, num_cells: int) -> tuple[torch.Tensor, ...]:
        """Products with matrices of shares, from both sides."""

        def shares(side: int) -> torch.Tensor:
            i = torch.arange(num_cells, device=x.device)[:, None]
            pixel = torch.arange(side, device=x.device)
            first, last = i * side // num_cells, ((i + 1) * side + num_cells - 1) // num_cells
            return ((pixel >= first) & (pixel < last)).double() / (last - first)

        return (shares(x.shape[1]) @ x.double() @ shares(x.shape[2]).t(),)

    def reference(self, x: torch.Tensor, num_cells: int) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (F.adaptive_avg_pool2d(x, (num_cells, num_cells)),)

    def flops(self, dims: Dims) -> int:
        """One addition for each element of x."""
        return dims["planes"] * dims["height"] * dims["width"]


PROBLEM = AdaptiveAvgPool2d()
