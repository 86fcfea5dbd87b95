"""Depthwise convolution of images."""

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


class DepthwiseConv2d(Problem):
    """Each channel with its own filter of `(2 reach + 1)^2` taps, plus its bias.

    The filter is not flipped (cross-correlation). Zeros surround the image, so the output has its
    size.
    """

    name = "depthwise_conv2d"
    summary = "each channel convolved with its own odd-sized filter, zero padding, bias"
    category = "Convolution"
    level = 3
    tags = ("vision", "memory-bound", "stencil")
    source = "ConvNeXt-T (7 x 7), MobileNetV2 (3 x 3) and MobileNetV3, EfficientNet-B0 (5 x 5)"

    args = (
        TensorArg("x", torch.float16, shape="batch, channels, height, width"),
        TensorArg("weight", torch.float16, shape="channels, 2 * reach + 1, 2 * reach + 1"),
        TensorArg("bias", torch.float16, shape="channels"),
    )
    outputs = (Output("out", torch.float16, shape="batch, channels, height, width"),)
    axes = (
        Axis("batch", 1, 4096),
        Axis("channels", 1, 8192),
        Axis("height", 1, 2048),
        Axis("width", 1, 2048),
        Axis("reach", 0, 4),
    )
    train = points(
        "batch channels height width reach",
        full=[
            (64, 96, 56, 56, 3),
            (128, 384, 14, 14, 3),
            (64, 144, 56, 56, 1),
            (128, 672, 14, 14, 2),
            (256, 960, 7, 7, 1),
        ],
        sim=[(1, 12, 56, 56, 3), (1, 96, 14, 14, 3), (1, 36, 56, 56, 1), (2, 84, 14, 14, 2)],
    )
    production = points(
        "batch channels height width reach",
        full=[(64, 192, 28, 28, 3), (32, 32, 112, 112, 1), (128, 240, 28, 28, 2)],
        sim=[(1, 24, 28, 28, 3), (1, 8, 112, 112, 1), (1, 60, 28, 28, 2)],
    )
    adversarial = ({"batch": 2, "channels": 3, "height": 1, "width": 2, "reach": 2},)
    distributions = ("normal", "offset", "structured", "sparse")

    def elements(self, dims: Dims) -> int:
        """Products."""
        pixels = dims["batch"] * dims["channels"] * dims["height"] * dims["width"]
        return pixels * (2 * dims["reach"] + 1) ** 2

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x by the distribution, weights over the side, and biases."""
        batch, channels, height, width, reach = (workload.dims[axis.name] for axis in self.axes)
        side = 2 * reach + 1
        shape = (batch, channels, height, width)
        return {
            "x": draw(shape, torch.float16, workload.distribution, generator),
            "weight": (torch.randn((channels, side, side), generator=generator) / side).half(),
            "bias": (0.5 * torch.randn(channels, generator=generator)).half(),
        }

    def oracle(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """One shifted image a tap."""
        _, _, height, width = x.shape
        side = weight.shape[-1]
        padded = F.pad(x.double(), (side // 2,) * 4)
        out = bias.double()[:, None, None].expand(x.shape)
        for i in range(side):
            for j in range(side):
                tap = weight.double()[:, i, j][:, None, None]
                out = out + tap * padded[:, :, i : i + height, j : j + width]
        return (out,)

    def reference(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """A grouped convolution."""
        channels, side, _ = weight.shape
        return (F.conv2d(x, weight[:, None], bias, padding=side // 2, groups=channels),)

    def flops(self, dims: Dims) -> int:
        """A product and an addition each."""
        return 2 * self.elements(dims)


PROBLEM = DepthwiseConv2d()
