"""Instance normalisation of images."""

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


class InstanceNorm(Problem):
    """Normalises each channel of each image to mean 0 and variance 1, then scales and shifts it.

    The statistics are over the pixels, with the biased variance plus eps.
    """

    name = "instance_norm"
    summary = "instance normalisation with weight and bias by channel"
    category = "Normalization"
    level = 2
    tags = ("vision", "memory-bound")
    source = "CycleGAN at 256 x 256, fast style transfer, nnU-Net decoders"

    args = (
        TensorArg("x", torch.float16, shape="batch, channels, pixels"),
        TensorArg("weight", torch.float16, shape="channels"),
        TensorArg("bias", torch.float16, shape="channels"),
        ScalarArg("eps", float, values=(1e-5, 1e-3, 1e-6, 1e-2)),
    )
    outputs = (Output("out", torch.float16, shape="batch, channels, pixels"),)
    axes = (Axis("batch", 1, 4096), Axis("channels", 1, 8192), Axis("pixels", 2, 1 << 21))
    train = points(
        "batch channels pixels",
        full=[(16, 256, 4096), (16, 128, 16384), (8, 64, 65536), (2, 32, 1048576), (64, 512, 256)],
        sim=[(1, 64, 4096), (1, 16, 16384), (2, 2, 65536), (4, 128, 256)],
    )
    production = points(
        "batch channels pixels",
        full=[(4, 32, 262144), (32, 256, 1024), (8, 320, 5120)],
        sim=[(1, 2, 131072), (2, 64, 1024), (1, 40, 5120)],
    )
    adversarial = ({"batch": 2, "channels": 1, "pixels": 2},)
    distributions = ("normal", "tiny", "offset", "structured")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x float16[batch, channels, pixels], weight around 1, bias around 0."""
        shape = (workload.dims["batch"], workload.dims["channels"], workload.dims["pixels"])
        return {
            "x": draw(shape, torch.float16, workload.distribution, generator),
            "weight": (1 + 0.3 * torch.randn(shape[1], generator=generator)).half(),
            "bias": (0.3 * torch.randn(shape[1], generator=generator)).half(),
            **self.scalars(workload),
        }

    def oracle(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
    ) -> tuple[torch.Tensor, ...]:
        """Centre first, then the mean of squares."""
        centred = x.double() - x.double().mean(2, keepdim=True)
        scale = torch.rsqrt(centred.square().mean(2, keepdim=True) + eps)
        return (centred * scale * weight.double()[:, None] + bias.double()[:, None],)

    def reference(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
    ) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (F.instance_norm(x, weight=weight, bias=bias, eps=eps),)

    def yardstick(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
    ) -> tuple[torch.Tensor, ...]:
        """Centres first, in float32. PyTorch's call loses digits where the mean is large."""
        centred = x.float() - x.float().mean(2, keepdim=True)
        scale = torch.rsqrt(centred.square().mean(2, keepdim=True) + eps)
        return ((centred * scale * weight.float()[:, None] + bias.float()[:, None]).half(),)

    def flops(self, dims: Dims) -> int:
        """Mean 1, variance 3, normalise 4 for each element."""
        return 8 * self.elements(dims)


PROBLEM = InstanceNorm()
