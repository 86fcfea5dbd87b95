"""Transposed convolution that upsamples a signal."""

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


class ConvTranspose1d(Problem):
    """`out[b, f, o] = bias[f] + sum of weight[c, f, j] * x[b, c, t]`.

    The sum is over all c, t and j with `t * stride + j = o + stride / 2`. Filters have `2 * stride`
    taps, so that `stride / 2` samples are cut at each end.
    """

    name = "conv_transpose1d"
    summary = "transposed 1-D convolution that upsamples by an even stride, plus bias"
    category = "Convolution"
    level = 4
    tags = ("audio", "compute-bound")
    source = "upsampling layers of HiFi-GAN V1 and V3 and of BigVGAN, decoder of EnCodec at 24 kHz"

    args = (
        TensorArg("x", torch.float16, shape="batch, channels, time"),
        TensorArg("weight", torch.float16, shape="channels, filters, 2 * stride"),
        TensorArg("bias", torch.float16, shape="filters"),
        ScalarArg("stride", int),
    )
    outputs = (Output("out", torch.float16, shape="batch, filters, time * stride"),)
    axes = (
        Axis("batch", 1, 1024),
        Axis("channels", 1, 4096),
        Axis("filters", 1, 4096),
        Axis("time", 1, 1 << 18),
        Axis("stride", 2, 16, multiple=2),
    )
    train = points(
        "batch channels filters time stride",
        full=[
            (16, 512, 256, 256, 8),
            (16, 256, 128, 2048, 8),
            (16, 128, 64, 16384, 2),
            (16, 64, 32, 32768, 2),
            (8, 512, 256, 750, 8),
        ],
        sim=[(1, 64, 32, 64, 8), (1, 32, 16, 256, 8), (2, 32, 16, 512, 2), (1, 16, 8, 2048, 2)],
    )
    production = points(
        "batch channels filters time stride",
        full=[(32, 256, 128, 600, 4), (4, 1536, 768, 200, 4), (16, 128, 64, 3000, 4)],
        sim=[(2, 32, 16, 150, 4), (1, 96, 48, 50, 4), (1, 16, 8, 750, 4)],
    )
    adversarial = ({"batch": 2, "channels": 1, "filters": 3, "time": 1, "stride": 2},)
    distributions = ("normal", "uniform", "structured", "sparse")

    def elements(self, dims: Dims) -> int:
        """Multiply-adds."""
        samples = dims["batch"] * dims["time"] * 2 * dims["stride"]
        return samples * dims["channels"] * dims["filters"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x by the distribution, weights over the root of their fan-in, and biases."""
        batch, channels, filters, time, factor = (workload.dims[axis.name] for axis in self.axes)
        weight = torch.randn((channels, filters, 2 * factor), generator=generator)
        return {
            "x": draw((batch, channels, time), torch.float16, workload.distribution, generator),
            "weight": (weight / (2 * channels) ** 0.5).half(),
            "bias": (0.5 * torch.randn(filters, generator=generator)).half(),
            "stride": factor,
        }

    def oracle(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, stride: int
    ) -> tuple[torch.Tensor, ...]:
        """Every sample times its filters, in pieces of one stride that overlap by one."""
        batch, _, time = x.shape
        filters = weight.shape[1]
        pieces = torch.einsum("bct,cfj->bftj", x.double(), weight.double())
        long = torch.zeros((batch, filters, time + 1, stride), dtype=torch.float64, device=x.device)
        long[:, :, :-1] += pieces[..., :stride]
        long[:, :, 1:] += pieces[..., stride:]
        cut = stride // 2
        flat = long.reshape(batch, filters, -1)[:, :, cut : cut + time * stride]
        return (flat + bias.double()[:, None],)

    def reference(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, stride: int
    ) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (F.conv_transpose1d(x, weight, bias, stride, stride // 2),)

    def flops(self, dims: Dims) -> int:
        """A product and an addition each, at most the half of the first and last sample less."""
        batch, channels, filters, time, factor = (dims[axis.name] for axis in self.axes)
        return 2 * batch * channels * filters * (2 * time - 1) * factor


PROBLEM = ConvTranspose1d()
