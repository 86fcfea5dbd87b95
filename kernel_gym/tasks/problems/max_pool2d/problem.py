"""Maximum pooling: windows of three, stride two, one pixel of padding."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from kernel_gym.tasks.distributions import draw
from kernel_gym.tasks.problem import (
    Axis,
    Check,
    Dims,
    Output,
    Problem,
    TensorArg,
    Value,
    points,
)
from kernel_gym.tasks.workload import Workload


class MaxPool2d(Problem):
    """The largest value of each 3 x 3 window around every second row and column.

    Places outside the plane never win. The output has `(side - 1) // 2 + 1` rows and columns.
    """

    name = "max_pool2d"
    summary = "3 x 3 max pooling with stride 2 and padding 1"
    category = "Pooling"
    level = 2
    tags = ("vision", "memory-bound", "stencil")
    source = (
        "stems of ResNet-50, DenseNet-121 and ShuffleNetV2 at 224 x 224, of Faster R-CNN at 800"
    )

    args = (TensorArg("x", torch.float16, shape="planes, height, width"),)
    outputs = (
        Output(
            "out",
            torch.float16,
            check=Check.EXACT,
            shape="planes, (height - 1) // 2 + 1, (width - 1) // 2 + 1",
        ),
    )
    axes = (Axis("planes", 1, 1 << 20), Axis("height", 1, 4096), Axis("width", 1, 4096))
    train = points(
        "planes height width",
        full=[
            (8192, 112, 112),
            (512, 400, 672),
            (3072, 112, 112),
            (32768, 28, 28),
            (16384, 56, 56),
        ],
        sim=[(16, 112, 112), (1, 400, 336), (64, 56, 56), (200, 28, 28)],
    )
    production = points(
        "planes height width",
        full=[(4096, 128, 128), (1024, 224, 224), (6144, 96, 96)],
        sim=[(12, 128, 128), (4, 224, 224), (20, 96, 96)],
    )
    adversarial = ({"planes": 3, "height": 1, "width": 2},)
    distributions = ("normal", "range_ends", "structured", "constant_rows")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x float16[planes, height, width]."""
        shape = (workload.dims["planes"], workload.dims["height"], workload.dims["width"])
        return {"x": draw(shape, torch.float16, workload.distribution, generator)}

    def oracle(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The maximum of nine shifted views of a padded plane."""
        padded = F.pad(x.double(), (1, 2, 1, 2), value=float("-inf"))
        height, width = (x.shape[1] - 1) // 2 + 1, (x.shape[2] - 1) // 2 + 1
        rows = [padded[:, i : i + 2 * height : 2] for i in range(3)]
        views = [row[:, :, j : j + 2 * width : 2] for row in rows for j in range(3)]
        return (torch.stack(views).amax(0),)

    def reference(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (F.max_pool2d(x[:, None], 3, 2, 1)[:, 0],)

    def flops(self, dims: Dims) -> int:
        """A comparison for each element."""
        return self.elements(dims)


PROBLEM = MaxPool2d()
