"""Convolution of signals over all their channels."""

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


class Conv1d(Problem):
    """`out[b, f, o] = bias[f] + sum of weight[f, c, j] * x[b, c, o * stride + j - reach]`.

    The sum is over c and j. The filters have `2 reach + 1` taps (cross-correlation); places outside
    the signal count as zeros. `o` runs from 0 to `(time - 1) // stride`.
    """

    name = "conv1d"
    summary = "1-D convolution over all channels with a stride, zero padding and bias"
    category = "Convolution"
    level = 4
    tags = ("audio", "compute-bound")
    source = "stem of Whisper-large-v3, feature encoder of wav2vec2-large, EnCodec and HiFi-GAN V1"

    args = (
        TensorArg("x", torch.float16, shape="batch, channels, time"),
        TensorArg("weight", torch.float16, shape="filters, channels, 2 * reach + 1"),
        TensorArg("bias", torch.float16, shape="filters"),
        ScalarArg("stride", int),
    )
    outputs = (Output("out", torch.float16, shape="batch, filters, (time - 1) // stride + 1"),)
    axes = (
        Axis("batch", 1, 1024),
        Axis("channels", 1, 4096),
        Axis("filters", 1, 4096),
        Axis("time", 1, 1 << 18),
        Axis("reach", 0, 8),
        Axis("stride", 1, 8),
    )
    train = points(
        "batch channels filters time reach stride",
        full=[
            (16, 128, 1280, 3000, 1, 1),
            (16, 1280, 1280, 3000, 1, 2),
            (8, 512, 512, 16000, 1, 2),
            (16, 256, 256, 2048, 5, 1),
            (8, 512, 128, 750, 3, 1),
        ],
        sim=[
            (2, 16, 160, 300, 1, 1),
            (1, 80, 80, 600, 1, 2),
            (2, 32, 32, 800, 1, 2),
            (1, 32, 32, 512, 5, 1),
        ],
    )
    production = points(
        "batch channels filters time reach stride",
        full=[(16, 80, 512, 3000, 1, 1), (32, 128, 128, 8192, 3, 1), (8, 64, 64, 24000, 1, 1)],
        sim=[(2, 20, 64, 375, 1, 1), (2, 16, 16, 1024, 3, 1), (1, 16, 16, 3000, 1, 1)],
    )
    adversarial = (
        {"batch": 2, "channels": 1, "filters": 3, "time": 1, "reach": 2, "stride": 3},
        {"batch": 1, "channels": 3, "filters": 1, "time": 7, "reach": 0, "stride": 4},
    )
    distributions = ("normal", "uniform", "structured", "sparse")

    def elements(self, dims: Dims) -> int:
        """Multiply-adds."""
        taps = 2 * dims["reach"] + 1
        return dims["batch"] * dims["channels"] * dims["filters"] * _length(dims) * taps

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x by the distribution, weights over the root of their fan-in, and biases."""
        batch, channels, filters, time, reach, step = (workload.dims[a.name] for a in self.axes)
        taps = 2 * reach + 1
        weight = torch.randn((filters, channels, taps), generator=generator)
        return {
            "x": draw((batch, channels, time), torch.float16, workload.distribution, generator),
            "weight": (weight / (taps * channels) ** 0.5).half(),
            "bias": (0.5 * torch.randn(filters, generator=generator)).half(),
            "stride": step,
        }

    def oracle(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, stride: int
    ) -> tuple[torch.Tensor, ...]:
        """A product with the filters at each shift, in fp64."""
        taps = weight.shape[2]
        time = x.shape[2]
        padded = F.pad(x.double(), (taps // 2, taps // 2))
        total = sum(
            weight.double()[:, :, j] @ padded[:, :, j : j + time : stride] for j in range(taps)
        )
        return (total + bias.double()[:, None],)

    def reference(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, stride: int
    ) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (F.conv1d(x, weight, bias, stride, weight.shape[2] // 2),)

    def bytes(self, dims: Dims) -> int:
        """Read what is used of x, weight and bias, write out, 2 bytes an element each."""
        batch, channels, filters, time, reach, step = (dims[axis.name] for axis in self.axes)
        taps = 2 * reach + 1
        used = time if taps >= step else _length(dims)
        signal = batch * (channels * used + filters * _length(dims))
        return 2 * (signal + filters * (channels * taps + 1))

    def flops(self, dims: Dims) -> int:
        """A product and an addition each; those with the zeros at the ends count, too."""
        return 2 * self.elements(dims)


def _length(dims: Dims) -> int:
    return (dims["time"] - 1) // dims["stride"] + 1


PROBLEM = Conv1d()
