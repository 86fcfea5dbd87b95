"""Convolution of images with 3 x 3 filters."""

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


class Conv2d(Problem):
    """Filters of 3 x 3 over all channels (cross-correlation), plus a bias by output channel.

    The stride is 1. One pixel of zeros surrounds the image, so the output has its size.
    """

    name = "conv2d"
    summary = "3 x 3 convolution over all channels with stride 1, zero padding and bias"
    category = "Convolution"
    level = 4
    tags = ("vision", "diffusion", "compute-bound")
    source = (
        "stages of ResNet-50 and VGG-16 at 224 x 224, residual blocks of the Stable Diffusion U-Net"
    )

    args = (
        TensorArg("x", torch.float16, shape="batch, channels, height, width"),
        TensorArg("weight", torch.float16, shape="filters, channels, 3, 3"),
        TensorArg("bias", torch.float16, shape="filters"),
    )
    outputs = (Output("out", torch.float16, shape="batch, filters, height, width"),)
    axes = (
        Axis("batch", 1, 1024),
        Axis("channels", 1, 4096),
        Axis("filters", 1, 4096),
        Axis("height", 1, 1024),
        Axis("width", 1, 1024),
    )
    train = points(
        "batch channels filters height width",
        full=[
            (64, 64, 64, 56, 56),
            (64, 128, 128, 28, 28),
            (64, 256, 256, 14, 14),
            (8, 320, 320, 64, 64),
            (128, 512, 512, 7, 7),
        ],
        sim=[(1, 32, 32, 28, 28), (2, 64, 64, 14, 14), (1, 40, 80, 16, 16), (4, 64, 64, 7, 7)],
    )
    production = points(
        "batch channels filters height width",
        full=[(16, 64, 128, 112, 112), (8, 640, 640, 32, 32), (16, 256, 512, 28, 28)],
        sim=[(1, 16, 32, 40, 40), (1, 80, 80, 16, 16), (1, 32, 64, 24, 24)],
    )
    adversarial = ({"batch": 2, "channels": 1, "filters": 3, "height": 1, "width": 2},)
    distributions = ("normal", "uniform", "structured", "sparse")

    def elements(self, dims: Dims) -> int:
        """Multiply-adds."""
        pixels = dims["batch"] * dims["height"] * dims["width"]
        return 9 * pixels * dims["channels"] * dims["filters"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x by the distribution, weights over the root of their fan-in, and biases."""
        batch, channels, filters, height, width = (workload.dims[axis.name] for axis in self.axes)
        weight = torch.randn((filters, channels, 3, 3), generator=generator) / (9 * channels) ** 0.5
        shape = (batch, channels, height, width)
        return {
            "x": draw(shape, torch.float16, workload.distribution, generator),
            "weight": weight.half(),
            "bias": (0.5 * torch.randn(filters, generator=generator)).half(),
        }

    def oracle(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """A product with the filters at each of nine shifts."""
        batch, channels, height, width = x.shape
        padded = F.pad(x.double(), (1, 1, 1, 1))
        total = bias.double()[:, None].expand(batch, -1, height * width)
        for i in range(3):
            for j in range(3):
                view = padded[:, :, i : i + height, j : j + width].reshape(batch, channels, -1)
                total = total + weight.double()[:, :, i, j] @ view
        return (total.reshape(batch, -1, height, width).contiguous(),)

    def reference(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (F.conv2d(x, weight, bias, padding=1),)

    def flops(self, dims: Dims) -> int:
        """A product and an addition each, less those with the zeros around the image.

        Four ninths are counted: a Winograd transform of 2 x 2 tiles needs no more.
        """
        return 2 * self.elements(dims) * 4 // 9


PROBLEM = Conv2d()
