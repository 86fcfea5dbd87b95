"""Patch embedding of vision transformers, with their position embedding."""

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


class PatchEmbed(Problem):
    """`out[b, t, f] = bias[f] + position[t, f] + sum over h, i, j of weight[f, h, i, j] * pixel`.

    The pixel of token `t = r * cols + c` is `x[b, h, r * patch + i, c * patch + j]`, with channel h
    and i and j from 0 to `patch - 1`.
    """

    name = "patch_embed"
    summary = "patches of images times filters, plus bias and a position embedding"
    category = "Convolution"
    level = 4
    tags = ("vision", "diffusion", "compute-bound", "layout")
    source = (
        "ViT-L/16 and ViT-B/16 at 224 pixels, CLIP ViT-L/14, Swin-B (4), DiT-XL/2 and SD3-medium"
    )

    args = (
        TensorArg("x", torch.float16, shape="batch, channels, rows * patch, cols * patch"),
        TensorArg("weight", torch.float16, shape="hidden, channels, patch, patch"),
        TensorArg("bias", torch.float16, shape="hidden"),
        TensorArg("position", torch.float16, shape="rows * cols, hidden"),
    )
    outputs = (Output("out", torch.float16, shape="batch, rows * cols, hidden"),)
    axes = (
        Axis("batch", 1, 4096),
        Axis("channels", 1, 64),
        Axis("rows", 1, 256),
        Axis("cols", 1, 256),
        Axis("patch", 1, 32),
        Axis("hidden", 1, 8192),
    )
    train = points(
        "batch channels rows cols patch hidden",
        full=[
            (128, 3, 14, 14, 16, 1024),
            (64, 3, 16, 16, 14, 1024),
            (64, 3, 56, 56, 4, 128),
            (256, 4, 16, 16, 2, 1152),
            (16, 16, 64, 64, 2, 1536),
        ],
        sim=[
            (1, 3, 7, 7, 16, 512),
            (1, 3, 8, 8, 14, 384),
            (1, 3, 28, 28, 4, 128),
            (4, 4, 8, 8, 2, 1152),
        ],
    )
    production = points(
        "batch channels rows cols patch hidden",
        full=[(64, 3, 14, 14, 16, 768), (16, 3, 24, 24, 14, 1152), (64, 3, 7, 7, 32, 768)],
        sim=[(1, 3, 6, 6, 16, 384), (1, 3, 12, 12, 14, 128), (1, 3, 4, 4, 32, 192)],
    )
    adversarial = (
        {"batch": 2, "channels": 3, "rows": 1, "cols": 2, "patch": 3, "hidden": 5},
        {"batch": 1, "channels": 1, "rows": 3, "cols": 1, "patch": 1, "hidden": 7},
    )
    distributions = ("normal", "uniform", "structured", "sparse")

    def elements(self, dims: Dims) -> int:
        """Multiply-adds."""
        return (
            _tokens(dims) * dims["batch"] * dims["channels"] * dims["patch"] ** 2 * dims["hidden"]
        )

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x by the distribution, weights over the root of their fan-in, biases, places."""
        batch, channels, rows, cols, patch, hidden = (workload.dims[a.name] for a in self.axes)
        fan_in = channels * patch**2
        weight = torch.randn((hidden, channels, patch, patch), generator=generator)
        shape = (batch, channels, rows * patch, cols * patch)
        return {
            "x": draw(shape, torch.float16, workload.distribution, generator),
            "weight": (weight / fan_in**0.5).half(),
            "bias": (0.5 * torch.randn(hidden, generator=generator)).half(),
            "position": (0.5 * torch.randn((rows * cols, hidden), generator=generator)).half(),
        }

    def oracle(
        self,
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
        position: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """Patches cut out and flattened, then one product, in fp64."""
        batch, channels, height, width = x.shape
        patch = weight.shape[2]
        cut = x.double().reshape(batch, channels, height // patch, patch, width // patch, patch)
        flat = cut.permute(0, 2, 4, 1, 3, 5).reshape(batch, position.shape[0], -1)
        product = flat @ weight.double().flatten(1).t()
        return (product + bias.double() + position.double(),)

    def reference(
        self,
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
        position: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """A convolution with the patch as stride, then the positions, as timm writes it."""
        planes = F.conv2d(x, weight, bias, stride=weight.shape[2])
        return (planes.flatten(2).transpose(1, 2) + position,)

    def flops(self, dims: Dims) -> int:
        """A product and an addition for each multiply-add."""
        return 2 * self.elements(dims)


def _tokens(dims: Dims) -> int:
    return dims["rows"] * dims["cols"]


PROBLEM = PatchEmbed()
