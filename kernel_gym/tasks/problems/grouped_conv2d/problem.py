"""Grouped convolution of images, with a stride and a dilation."""

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

_SIDES = ", ".join(f"({side} - 1) // stride + 1" for side in ("height", "width"))


class GroupedConv2d(Problem):
    """Each group of `filters` filters sees its own `channels` channels (cross-correlation).

    `out[b, g * filters + f]` is the sum over the channels c of group g and the taps (i, j) of
    `x[b, g * channels + c, y + i * dilation - pad, ...] * weight[g * filters + f, c, i, j]`, with
    `pad = dilation * (window // 2)`, an odd `window`, and zeros outside the image. y and x go from
    0 in steps of `stride`.
    """

    name = "grouped_conv2d"
    summary = "2-D convolution by groups of channels with stride, dilation and zero padding"
    category = "Convolution"
    level = 4
    tags = ("vision", "compute-bound")
    source = "ResNeXt-50 (32 x 4d, 32 x 8d), RegNetX, DeepLabV3 (dilations 2 and 4), ShuffleNet"

    args = (
        TensorArg("x", torch.float16, shape="batch, groups * channels, height, width"),
        TensorArg("weight", torch.float16, shape="groups * filters, channels, window, window"),
        ScalarArg("groups", int),
        ScalarArg("stride", int),
        ScalarArg("dilation", int),
    )
    outputs = (Output("out", torch.float16, shape=f"batch, groups * filters, {_SIDES}"),)
    axes = (
        Axis("batch", 1, 1024),
        Axis("groups", 1, 256),
        Axis("channels", 1, 512),
        Axis("filters", 1, 512),
        Axis("height", 1, 512),
        Axis("width", 1, 512),
        Axis("window", 1, 5),
        Axis("stride", 1, 3),
        Axis("dilation", 1, 8),
    )
    train = points(
        "batch groups channels filters height width window stride dilation",
        full=[
            (32, 32, 4, 4, 56, 56, 3, 1, 1),
            (32, 32, 8, 8, 56, 56, 3, 2, 1),
            (8, 2, 128, 128, 28, 28, 3, 1, 2),
            (16, 8, 30, 30, 28, 28, 1, 1, 1),
        ],
        sim=[
            (1, 16, 4, 4, 28, 28, 3, 1, 1),
            (2, 8, 8, 8, 28, 28, 3, 2, 1),
            (1, 2, 32, 32, 16, 16, 3, 1, 2),
            (2, 4, 30, 30, 16, 16, 1, 1, 1),
        ],
    )
    production = points(
        "batch groups channels filters height width window stride dilation",
        full=[
            (64, 32, 16, 16, 14, 14, 3, 1, 1),
            (8, 1, 512, 512, 28, 28, 3, 1, 4),
            (32, 10, 24, 24, 28, 28, 3, 2, 1),
            (16, 16, 16, 16, 56, 56, 5, 1, 1),
        ],
        sim=[
            (2, 16, 8, 8, 12, 12, 3, 1, 1),
            (1, 1, 48, 48, 14, 14, 3, 1, 4),
            (2, 5, 24, 24, 14, 14, 3, 2, 1),
            (1, 4, 8, 8, 20, 20, 5, 1, 1),
        ],
    )
    adversarial = (
        {
            "batch": 2,
            "groups": 2,
            "channels": 1,
            "filters": 3,
            "height": 3,
            "width": 5,
            "window": 3,
            "stride": 2,
            "dilation": 3,
        },
        {
            "batch": 1,
            "groups": 3,
            "channels": 2,
            "filters": 1,
            "height": 6,
            "width": 2,
            "window": 1,
            "stride": 1,
            "dilation": 8,
        },
    )
    distributions = ("normal", "uniform", "structured", "sparse")

    def legal(self, dims: Dims) -> bool:
        """On its axes, with an odd window."""
        return super().legal(dims) and dims["window"] % 2 == 1

    def _count(self, dims: Dims) -> int:
        rows, cols = ((dims[side] - 1) // dims["stride"] + 1 for side in ("height", "width"))
        return dims["batch"] * rows * cols

    def elements(self, dims: Dims) -> int:
        """Multiply-adds."""
        group = dims["channels"] * dims["filters"] * dims["window"] ** 2
        return self._count(dims) * dims["groups"] * group

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x by the distribution, and weights over the root of their fan-in."""
        batch, groups, channels, filters, height, width, window, stride, dilation = (
            workload.dims[axis.name] for axis in self.axes
        )
        shape = (groups * filters, channels, window, window)
        weight = torch.randn(shape, generator=generator) / (window**2 * channels) ** 0.5
        image = (batch, groups * channels, height, width)
        return {
            "x": draw(image, torch.float16, workload.distribution, generator),
            "weight": weight.half(),
            "groups": groups,
            "stride": stride,
            "dilation": dilation,
        }

    def oracle(
        self, x: torch.Tensor, weight: torch.Tensor, groups: int, stride: int, dilation: int
    ) -> tuple[torch.Tensor, ...]:
        """PyTorch's convolution in fp64, group by group."""
        pad = dilation * (weight.shape[2] // 2)
        parts = zip(x.double().chunk(groups, 1), weight.double().chunk(groups), strict=True)
        out = [F.conv2d(*part, None, stride, pad, dilation) for part in parts]
        return (torch.cat(out, dim=1),)

    def reference(
        self, x: torch.Tensor, weight: torch.Tensor, groups: int, stride: int, dilation: int
    ) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        pad = dilation * (weight.shape[2] // 2)
        out = F.conv2d(x, weight, None, stride, pad, dilation, groups)
        return (out,)

    def bytes(self, dims: Dims) -> int:
        """Reads the weights and at least one pixel for each output and channel; writes outputs."""
        channels, filters = dims["channels"], dims["filters"]
        pixels = self._count(dims) * dims["groups"] * (channels + filters)
        return 2 * (pixels + dims["groups"] * filters * channels * dims["window"] ** 2)

    def flops(self, dims: Dims) -> int:
        """A product and an addition each; 4 of 9 are counted, as Winograd's transform needs."""
        return 2 * self.elements(dims) * 4 // 9


PROBLEM = GroupedConv2d()
