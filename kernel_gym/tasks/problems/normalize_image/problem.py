"""Bytes of images to normalised planes."""

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


class NormalizeImage(Problem):
    """`(x[b, pixel, c] / 255 - mean[c]) / std[c]`, from NHWC bytes to NCHW float16."""

    name = "normalize_image"
    summary = (
        "out[b, c, i] = (x[b, i, c] / 255 - mean[c]) / std[c]: bytes, channels last, to planes"
    )
    category = "Random-and-layout"
    level = 2
    tags = ("vision", "memory-bound", "layout")
    source = (
        "input pipelines of ResNet-50, CLIP-L at 336 x 336, SAM at 1024 x 1024, 13-band EuroSAT"
    )

    args = (
        TensorArg("x", torch.uint8, shape="batch, pixels, channels"),
        TensorArg("mean", torch.float32, shape="channels"),
        TensorArg("std", torch.float32, shape="channels"),
    )
    outputs = (Output("out", torch.float16, shape="batch, channels, pixels"),)
    axes = (Axis("batch", 1, 1 << 14), Axis("pixels", 1, 1 << 23), Axis("channels", 1, 64))
    train = points(
        "batch pixels channels",
        full=[
            (256, 50176, 3),
            (128, 112896, 3),
            (8, 1048576, 3),
            (1024, 4096, 13),
            (64, 150528, 4),
        ],
        sim=[(1, 50176, 3), (2, 12544, 3), (4, 4096, 13), (1, 37632, 4)],
    )
    production = points(
        "batch pixels channels",
        full=[(64, 409600, 3), (512, 36864, 1), (128, 147456, 3)],
        sim=[(1, 40960, 3), (3, 36864, 1), (4, 9216, 3)],
    )
    adversarial = ({"batch": 2, "pixels": 3, "channels": 1},)
    distributions = ("uniform", "normal", "structured", "sparse")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws bytes around the middle, and statistics like ImageNet's."""
        batch, pixels, channels = (workload.dims[axis.name] for axis in self.axes)
        shape = (batch, pixels, channels)
        x = 128 + 100 * draw(shape, torch.float32, workload.distribution, generator)
        return {
            "x": x.clamp(0, 255).round().to(torch.uint8),
            "mean": 0.4 + 0.1 * torch.rand(channels, generator=generator),
            "std": 0.2 + 0.1 * torch.rand(channels, generator=generator),
        }

    def oracle(
        self, x: torch.Tensor, mean: torch.Tensor, std: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        out = (x.double() / 255 - mean.double()) / std.double()
        return (out.transpose(1, 2).contiguous(),)

    def reference(
        self, x: torch.Tensor, mean: torch.Tensor, std: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """As image pipelines write it: permute, convert, normalise; rounded once."""
        planes = x.permute(0, 2, 1).float() / 255
        return (((planes - mean[:, None]) / std[:, None]).half().contiguous(),)

    def flops(self, dims: Dims) -> int:
        """A product and an addition for each byte."""
        return 2 * self.elements(dims)


PROBLEM = NormalizeImage()
