"""Convolution of volumes."""

from __future__ import annotations

import math

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

_SIDES = ", ".join(f"({side} - 1) // stride + 1" for side in ("depth", "height", "width"))


class Conv3d(Problem):
    """`out[b, f] = sum over c of x[b, c] * weight[f, c] + bias[f]` (cross-correlation) in 3-D.

    Filters are cubes of `window`^3 taps with an odd `window`. Around the volume there are
    `window // 2` voxels of zeros on each side. Every `stride`-th voxel of each axis has an output.
    """

    name = "conv3d"
    summary = "3-D convolution with cubic filters, a stride and zero padding, plus bias"
    category = "Convolution"
    level = 4
    tags = ("vision", "diffusion", "compute-bound")
    source = "stages of I3D and R3D-18 (clips of 16 frames), 3D U-Net and the VAE of HunyuanVideo"

    args = (
        TensorArg("x", torch.float16, shape="batch, channels, depth, height, width"),
        TensorArg("weight", torch.float16, shape="filters, channels, window, window, window"),
        TensorArg("bias", torch.float16, shape="filters"),
        ScalarArg("stride", int),
    )
    outputs = (Output("out", torch.float16, shape=f"batch, filters, {_SIDES}"),)
    axes = (
        Axis("batch", 1, 256),
        Axis("channels", 1, 2048),
        Axis("filters", 1, 2048),
        Axis("depth", 1, 128),
        Axis("height", 1, 512),
        Axis("width", 1, 512),
        Axis("window", 1, 5),
        Axis("stride", 1, 3),
    )
    train = points(
        "batch channels filters depth height width window stride",
        full=[
            (4, 64, 64, 8, 56, 56, 3, 1),
            (4, 64, 128, 16, 56, 56, 3, 2),
            (1, 128, 128, 5, 90, 160, 3, 1),
            (2, 256, 512, 8, 14, 14, 1, 1),
        ],
        sim=[
            (1, 16, 16, 4, 14, 14, 3, 1),
            (1, 16, 32, 8, 14, 14, 3, 2),
            (1, 24, 24, 3, 9, 16, 3, 1),
            (2, 64, 96, 4, 7, 7, 1, 1),
        ],
    )
    production = points(
        "batch channels filters depth height width window stride",
        full=[
            (8, 3, 64, 16, 112, 112, 3, 2),
            (2, 32, 64, 64, 64, 64, 3, 1),
            (8, 128, 128, 8, 28, 28, 3, 1),
            (1, 16, 32, 32, 64, 64, 5, 2),
        ],
        sim=[
            (1, 3, 32, 6, 20, 20, 3, 2),
            (1, 8, 16, 8, 10, 10, 3, 1),
            (2, 16, 16, 4, 7, 7, 3, 1),
            (1, 4, 8, 6, 12, 12, 5, 2),
        ],
    )
    adversarial = (
        {
            "batch": 2,
            "channels": 1,
            "filters": 3,
            "depth": 1,
            "height": 2,
            "width": 3,
            "window": 3,
            "stride": 1,
        },
        {
            "batch": 1,
            "channels": 2,
            "filters": 1,
            "depth": 4,
            "height": 3,
            "width": 5,
            "window": 5,
            "stride": 3,
        },
    )
    distributions = ("normal", "uniform", "structured", "sparse")

    def legal(self, dims: Dims) -> bool:
        """On its axes, with an odd window."""
        return super().legal(dims) and dims["window"] % 2 == 1

    def elements(self, dims: Dims) -> int:
        """Multiply-adds."""
        voxels = dims["batch"] * math.prod(self._counts(dims))
        return voxels * dims["channels"] * dims["filters"] * dims["window"] ** 3

    def _counts(self, dims: Dims) -> list[int]:
        sides = (dims[axis] for axis in ("depth", "height", "width"))
        return [(side - 1) // dims["stride"] + 1 for side in sides]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x by the distribution, weights over the root of their fan-in, and biases."""
        batch, channels, filters, *sides, window, stride = (
            workload.dims[axis.name] for axis in self.axes
        )
        shape = (filters, channels, window, window, window)
        weight = torch.randn(shape, generator=generator) / (window**3 * channels) ** 0.5
        volume = (batch, channels, *sides)
        return {
            "x": draw(volume, torch.float16, workload.distribution, generator),
            "weight": weight.half(),
            "bias": (0.5 * torch.randn(filters, generator=generator)).half(),
            "stride": stride,
        }

    def oracle(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, stride: int
    ) -> tuple[torch.Tensor, ...]:
        """PyTorch's convolution in fp64."""
        out = F.conv3d(x.double(), weight.double(), None, stride, weight.shape[2] // 2)
        return (out + bias.double()[:, None, None, None],)

    def reference(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, stride: int
    ) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (F.conv3d(x, weight, bias, stride=stride, padding=weight.shape[2] // 2),)

    def bytes(self, dims: Dims) -> int:
        """Reads the weights and at least one voxel for each output and channel; writes outputs."""
        batch, channels, filters = (dims[axis] for axis in ("batch", "channels", "filters"))
        count = math.prod(self._counts(dims))
        taps = filters * channels * dims["window"] ** 3
        return 2 * (batch * count * (channels + filters) + taps + filters)

    def flops(self, dims: Dims) -> int:
        """A product and an addition each; 8 of 27 are counted, as Winograd's transform needs."""
        return 2 * self.elements(dims) * 8 // 27


PROBLEM = Conv3d()
