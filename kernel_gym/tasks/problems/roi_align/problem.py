"""RoIAlign: features of boxes on a fixed grid of cells."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from kernel_gym.tasks.distributions import draw, draw_mask
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


class RoiAlign(Problem):
    """`out[r, c, i, j]` is the mean of `ratio`^2 bilinear samples in cell (i, j) of box r.

    A box is `(image, x1, y1, x2, y2)` in pixels of the input image. Its left end on the map is
    `x1 * scale - 0.5`, its width `(x2 - x1) * scale` without a least size, and alike for y. Cells
    have 1 / cells of the width; samples of a cell lie at `(s + 0.5) / ratio` of it. Coordinates are
    clamped to 0 .. width - 1 of the map before the four pixels around them are weighted (aligned
    RoIAlign of Mask R-CNN).
    """

    name = "roi_align"
    summary = "mean of bilinear samples of a feature map in each cell of each box"
    category = "Pooling"
    level = 4
    tags = ("vision", "gather")
    source = "box and mask heads of Mask R-CNN R50-FPN (7 and 14 cells, strides 4 to 32), ViTDet"
    domain = (
        "All floating-point inputs are finite. Boxes lie within the image, 0 <= x1 <= x2 <= width "
        "/ scale and alike for y; their size may be 0. The image of a box is a whole number below "
        "batch."
    )

    args = (
        TensorArg("x", torch.float16, shape="batch, channels, height, width"),
        TensorArg("box", torch.float32, shape="boxes, 5"),
        ScalarArg("scale", float, values=(0.25, 0.0625, 0.125, 0.03125)),
        ScalarArg("cells", int),
        ScalarArg("ratio", int, values=(2, 1, 3)),
    )
    outputs = (Output("out", torch.float16, shape="boxes, channels, cells, cells"),)
    axes = (
        Axis("batch", 1, 256),
        Axis("channels", 1, 2048),
        Axis("height", 1, 512),
        Axis("width", 1, 512),
        Axis("boxes", 1, 1 << 16),
        Axis("cells", 1, 28),
    )
    train = points(
        "batch channels height width boxes cells",
        full=[
            (2, 256, 200, 304, 1000, 7),
            (1, 256, 100, 152, 512, 14),
            (4, 256, 50, 76, 1024, 7),
            (1, 1024, 50, 64, 300, 14),
        ],
        sim=[
            (2, 32, 50, 76, 24, 7),
            (1, 16, 100, 152, 8, 14),
            (4, 64, 25, 38, 16, 7),
            (1, 96, 25, 32, 5, 14),
        ],
    )
    production = points(
        "batch channels height width boxes cells",
        full=[
            (8, 256, 200, 200, 4000, 7),
            (1, 256, 25, 38, 100, 28),
            (2, 512, 64, 64, 2000, 7),
            (1, 2048, 32, 48, 128, 1),
        ],
        sim=[
            (4, 16, 50, 50, 64, 7),
            (1, 24, 25, 38, 2, 28),
            (2, 32, 64, 64, 30, 7),
            (1, 512, 32, 48, 40, 1),
        ],
    )
    adversarial = (
        {"batch": 1, "channels": 1, "height": 1, "width": 1, "boxes": 3, "cells": 2},
        {"batch": 3, "channels": 2, "height": 5, "width": 2, "boxes": 7, "cells": 3},
    )
    distributions = ("normal", "offset", "structured", "uniform")
    exchangeable = False

    def elements(self, dims: Dims) -> int:
        """Outputs, or pixels if these are more."""
        pixels = dims["batch"] * dims["height"] * dims["width"]
        return dims["channels"] * max(dims["boxes"] * dims["cells"] ** 2, pixels)

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws a map by the distribution, and boxes of all sizes, some of them empty."""
        batch, channels, height, width, boxes, cells = (workload.dims[a.name] for a in self.axes)
        chosen = self.scalars(workload)
        side = torch.tensor([width, height]) / chosen["scale"]
        size = torch.rand((boxes, 2), generator=generator) ** 2 * side
        size = size.masked_fill(draw_mask((boxes, 1), 0.05, generator), 0.0)
        low = torch.rand((boxes, 2), generator=generator) * (side - size)
        high = torch.minimum(low + size, side)
        image = torch.randint(batch, (boxes, 1), generator=generator).float()
        return {
            "x": draw(
                (batch, channels, height, width), torch.float16, workload.distribution, generator
            ),
            "box": torch.cat((image, low, high), dim=1),
            "scale": chosen["scale"],
            "cells": cells,
            "ratio": chosen["ratio"],
        }

    def oracle(
        self, x: torch.Tensor, box: torch.Tensor, scale: float, cells: int, ratio: int
    ) -> tuple[torch.Tensor, ...]:
        """Rows of samples are interpolated, then columns, then means, in fp64, by some boxes."""
        part = (torch.arange(cells * ratio, device=x.device).double() + 0.5) / ratio / cells
        boxes = max(1, (1 << 25) // (len(part) * x.shape[1] * x.shape[3]))  # 256 MiB of rows
        out = []
        for some in box.double().split(boxes):
            image, x1, y1, x2, y2 = some[:, :, None].unbind(dim=1)
            at = (y1 * scale - 0.5 + part * (y2 - y1) * scale).clamp(0, x.shape[2] - 1)
            near, image = at.floor().long(), image.long()
            share = (at - near)[:, :, None, None]
            below = (near + 1).clamp(max=x.shape[2] - 1)
            rows = (1 - share) * x[image, :, near].double() + share * x[image, :, below].double()
            at = (x1 * scale - 0.5 + part * (x2 - x1) * scale).clamp(0, x.shape[3] - 1)
            near = at.floor().long()
            share = (at - near)[:, None, None]
            right = (near + 1).clamp(max=x.shape[3] - 1)[:, None, None]
            left = rows.take_along_dim(near[:, None, None], dim=3)
            samples = (1 - share) * left + share * rows.take_along_dim(right, dim=3)
            out.append(F.avg_pool2d(samples.transpose(1, 2), ratio))
        return (torch.cat(out),)

    def reference(
        self, x: torch.Tensor, box: torch.Tensor, scale: float, cells: int, ratio: int
    ) -> tuple[torch.Tensor, ...]:
        """The four pixels around each sample are gathered, weighted, and averaged by cell."""
        part = (torch.arange(cells * ratio, device=x.device) + 0.5) / (ratio * cells)

        def around(
            low: torch.Tensor, high: torch.Tensor, side: int
        ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
            at = low[:, None] * scale - 0.5 + part * (high - low)[:, None] * scale
            at = at.clamp(0, side - 1)
            first = at.long()
            return first, (first + 1).clamp(max=side - 1), at - first

        top, bottom, down = around(box[:, 2], box[:, 4], x.shape[2])
        left, right, across = around(box[:, 1], box[:, 3], x.shape[3])
        image, pixels = box[:, 0].long()[:, None, None], x.permute(0, 2, 3, 1)

        def row(y: torch.Tensor) -> torch.Tensor:
            near = pixels[image, y[:, :, None], left[:, None]].float()
            far = pixels[image, y[:, :, None], right[:, None]].float()
            return torch.lerp(near, far, across[:, None, :, None])

        samples = torch.lerp(row(top), row(bottom), down[:, :, None, None])
        means = samples.view(-1, cells, ratio, cells, ratio, x.shape[1]).mean(dim=(2, 4))
        return (means.permute(0, 3, 1, 2).half(),)

    def bytes(self, dims: Dims) -> int:
        """Reads the boxes and writes the output; boxes may share one pixel of each channel."""
        boxes, channels = dims["boxes"], dims["channels"]
        return 20 * boxes + 2 * boxes * channels * dims["cells"] ** 2

    def flops(self, dims: Dims) -> int:
        """Four products and sums for each output, those of one sample."""
        return 8 * dims["boxes"] * dims["channels"] * dims["cells"] ** 2


PROBLEM = RoiAlign()
