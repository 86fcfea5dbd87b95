"""Channels rearranged into pixels."""

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
    ScalarArg,
    TensorArg,
    Value,
    points,
)
from kernel_gym.tasks.workload import Workload


class PixelShuffle(Problem):
    """`out[b, c, h r + i, w r + j] = x[b, (c r + i) r + j, h, w]`."""

    name = "pixel_shuffle"
    summary = (
        "out[b, c, h * factor + i, w * factor + j] = x[b, (c * factor + i) * factor + j, h, w]"
    )
    category = "Random-and-layout"
    level = 1
    tags = ("vision", "diffusion", "memory-bound", "layout")
    source = "upsamplers of ESPCN, EDSR, SwinIR and Real-ESRGAN, unpatchify of SD3's 2 x 2 patches"

    args = (
        TensorArg("x", torch.float16, shape="batch, channels * factor * factor, height, width"),
        ScalarArg("factor", int),
    )
    outputs = (
        Output(
            "out",
            torch.float16,
            check=Check.EXACT,
            shape="batch, channels, height * factor, width * factor",
        ),
    )
    axes = (
        Axis("batch", 1, 4096),
        Axis("channels", 1, 2048),
        Axis("height", 1, 2048),
        Axis("width", 1, 2048),
        Axis("factor", 1, 8),
    )
    train = points(
        "batch channels height width factor",
        full=[
            (16, 64, 128, 128, 2),
            (8, 64, 180, 320, 2),
            (16, 3, 360, 640, 4),
            (64, 16, 64, 64, 2),
            (8, 64, 128, 128, 3),
        ],
        sim=[(1, 16, 32, 64, 2), (1, 8, 45, 80, 2), (1, 3, 40, 40, 4), (2, 8, 24, 24, 3)],
    )
    production = points(
        "batch channels height width factor",
        full=[(4, 64, 256, 256, 2), (1, 3, 1080, 1920, 2), (32, 16, 96, 96, 2)],
        sim=[(1, 4, 64, 64, 2), (1, 3, 60, 100, 2), (3, 16, 24, 24, 2)],
    )
    adversarial = ({"batch": 2, "channels": 1, "height": 3, "width": 1, "factor": 2},)
    distributions = ("normal", "range_ends", "structured", "tiny")

    def elements(self, dims: Dims) -> int:
        """Elements of x."""
        pixels = dims["batch"] * dims["channels"] * dims["height"] * dims["width"]
        return pixels * dims["factor"] ** 2

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x float16[batch, channels * factor * factor, height, width]."""
        batch, channels, height, width, upscale = (workload.dims[a.name] for a in self.axes)
        shape = (batch, channels * upscale**2, height, width)
        x = draw(shape, torch.float16, workload.distribution, generator)
        return {"x": x, "factor": upscale}

    def oracle(self, x: torch.Tensor, factor: int) -> tuple[torch.Tensor, ...]:
        """A view of six axes, transposed."""
        batch, deep, height, width = x.shape
        split = x.double().reshape(batch, -1, factor, factor, height, width)
        mixed = split.permute(0, 1, 4, 2, 5, 3)
        channels = deep // factor**2
        return (mixed.reshape(batch, channels, height * factor, width * factor),)

    def reference(self, x: torch.Tensor, factor: int) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (F.pixel_shuffle(x, factor).contiguous(),)

    def flops(self, dims: Dims) -> int:
        """None."""
        return 0


PROBLEM = PixelShuffle()
