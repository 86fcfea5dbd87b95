"""Gradient of the filters of a convolution of images."""

from __future__ import annotations

import itertools
import math

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


class Conv2dWeightBackward(Problem):
    """`out[f, c, i, j] = sum over b, y, x of grad[b, f, y, x] * x[b, c, y + i - 1, x + j - 1]`.

    This is the gradient of 3 x 3 filters of a convolution with stride 1 and one pixel of zeros
    around the image. Sums are accumulated in float32 and rounded once.
    """

    name = "conv2d_weight_backward"
    summary = "gradient of 3 x 3 filters from the input and the gradient of the output"
    category = "Convolution"
    level = 4
    tags = ("vision", "training", "compute-bound", "reduction")
    source = "training of ResNet-50 and VGG-16 (224 x 224) and of the Stable Diffusion U-Net"

    args = (
        TensorArg("grad", torch.float16, shape="batch, filters, height, width"),
        TensorArg("x", torch.float16, shape="batch, channels, height, width"),
    )
    outputs = (Output("out", torch.float16, shape="filters, channels, 3, 3"),)
    axes = (
        Axis("batch", 1, 1024),
        Axis("channels", 1, 2048),
        Axis("filters", 1, 2048),
        Axis("height", 1, 512),
        Axis("width", 1, 512),
    )
    train = points(
        "batch channels filters height width",
        full=[
            (32, 64, 64, 56, 56),
            (32, 256, 256, 14, 14),
            (4, 320, 320, 64, 64),
            (16, 128, 128, 28, 28),
        ],
        sim=[(1, 32, 32, 28, 28), (2, 64, 64, 14, 14), (1, 40, 80, 16, 16), (4, 64, 64, 7, 7)],
    )
    production = points(
        "batch channels filters height width",
        full=[
            (8, 3, 64, 224, 224),
            (64, 512, 512, 7, 7),
            (2, 640, 640, 32, 32),
            (16, 64, 128, 56, 56),
        ],
        sim=[(1, 3, 64, 40, 40), (8, 48, 48, 7, 7), (1, 80, 80, 12, 12), (2, 16, 32, 24, 24)],
    )
    adversarial = (
        {"batch": 2, "channels": 1, "filters": 3, "height": 1, "width": 2},
        {"batch": 3, "channels": 5, "filters": 2, "height": 4, "width": 3},
    )
    distributions = ("normal", "uniform", "structured", "sparse")

    def elements(self, dims: Dims) -> int:
        """Multiply-adds."""
        return 9 * math.prod(dims[axis.name] for axis in self.axes)

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x by the distribution, and gradients over the root of the number of pixels."""
        batch, channels, filters, height, width = (workload.dims[axis.name] for axis in self.axes)
        grad = torch.randn((batch, filters, height, width), generator=generator)
        shape = (batch, channels, height, width)
        return {
            "grad": (grad / (batch * height * width) ** 0.5).half(),
            "x": draw(shape, torch.float16, workload.distribution, generator),
        }

    def oracle(self, grad: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """A product over all pixels for each of nine shifts, in fp64."""
        height, width = x.shape[2:]
        padded = F.pad(x.double(), (1, 1, 1, 1)).transpose(0, 1)
        left = grad.double().transpose(0, 1).flatten(1)
        taps = [
            left @ padded[:, :, i : i + height, j : j + width].flatten(1).mT
            for i, j in itertools.product(range(3), repeat=2)
        ]
        return (torch.stack(taps, dim=2).unflatten(2, (3, 3)),)

    def reference(self, grad: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The operator that PyTorch's backward pass calls."""
        weight = x.new_empty((grad.shape[1], x.shape[1], 3, 3))
        out = torch.ops.aten.convolution_backward(
            grad, x, weight, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [False, True, False]
        )
        return (out[1],)

    def yardstick(self, grad: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The same in float32 and rounded once, since CPUs round the parts of float16 sums."""
        return (self.reference(grad.float(), x.float())[0].half(),)

    def flops(self, dims: Dims) -> int:
        """A product and an addition each, 4 of 9 as in Winograd's transform."""
        return 2 * self.elements(dims) * 4 // 9


PROBLEM = Conv2dWeightBackward()
