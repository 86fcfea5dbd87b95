"""Group normalisation of images."""

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


class GroupNorm(Problem):
    """Normalises each group of channels to mean 0 and variance 1, then scales and shifts.

    The statistics are over the channels and pixels of a group, with the biased variance plus eps.
    Weight and bias are by channel.
    """

    name = "group_norm"
    summary = "group normalisation with weight and bias by channel"
    category = "Normalization"
    level = 3
    tags = ("diffusion", "vision", "memory-bound")
    source = "residual blocks of the Stable Diffusion 1.5 U-Net and VAE decoder, 32 groups each"

    args = (
        TensorArg("x", torch.float16, shape="batch, num_groups * group_channels, pixels"),
        TensorArg("weight", torch.float16, shape="num_groups * group_channels"),
        TensorArg("bias", torch.float16, shape="num_groups * group_channels"),
        ScalarArg("num_groups", int),
        ScalarArg("eps", float, values=(1e-5, 1e-3, 1e-6, 1e-2)),
    )
    outputs = (Output("out", torch.float16, shape="batch, num_groups * group_channels, pixels"),)
    axes = (
        Axis("batch", 1, 4096),
        Axis("num_groups", 1, 1024),
        Axis("group_channels", 1, 1024),
        Axis("pixels", 2, 1 << 19),
    )
    train = points(
        "batch num_groups group_channels pixels",
        full=[
            (8, 32, 10, 4096),
            (16, 32, 20, 1024),
            (32, 32, 40, 256),
            (2, 32, 4, 262144),
            (64, 32, 80, 64),
        ],
        sim=[(1, 16, 10, 1024), (1, 32, 20, 256), (2, 16, 40, 64), (1, 4, 4, 9216)],
    )
    production = points(
        "batch num_groups group_channels pixels",
        full=[(8, 32, 30, 4096), (16, 32, 60, 1024), (4, 32, 16, 65536)],
        sim=[(1, 16, 30, 256), (1, 8, 60, 256), (2, 4, 16, 1024)],
    )
    adversarial = ({"batch": 1, "num_groups": 3, "group_channels": 1, "pixels": 2},)
    distributions = ("normal", "tiny", "offset", "heavy_tail")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x float16[batch, channels, pixels], weight around 1, bias around 0."""
        batch, groups, width, pixels = (workload.dims[axis.name] for axis in self.axes)
        channels = groups * width
        return {
            "x": draw((batch, channels, pixels), torch.float16, workload.distribution, generator),
            "weight": (1 + 0.3 * torch.randn(channels, generator=generator)).half(),
            "bias": (0.3 * torch.randn(channels, generator=generator)).half(),
            "num_groups": groups,
            **self.scalars(workload),
        }

    def oracle(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, num_groups: int, eps: float
    ) -> tuple[torch.Tensor, ...]:
        """Centre first, then the mean of squares."""
        y = x.double().reshape(x.shape[0], num_groups, -1)
        centred = y - y.mean(2, keepdim=True)
        normal = centred * torch.rsqrt(centred.square().mean(2, keepdim=True) + eps)
        return (normal.reshape(x.shape) * weight.double()[:, None] + bias.double()[:, None],)

    def reference(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, num_groups: int, eps: float
    ) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (F.group_norm(x, num_groups, weight, bias, eps),)

    def flops(self, dims: Dims) -> int:
        """Mean 1, variance 3, normalise 4 for each element."""
        return 8 * self.elements(dims)


PROBLEM = GroupNorm()
