"""Short causal convolution by channel, with SiLU."""

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


class CausalConv1d(Problem):
    """`out[b, c, t] = silu(bias[c] + sum over j of weight[c, j] x[b, c, t - taps + 1 + j])`.

    Steps before the first count as zeros.
    """

    name = "causal_conv1d"
    summary = "depthwise causal convolution over time with bias and SiLU, as in Mamba"
    category = "Convolution"
    level = 2
    tags = ("state-space", "audio", "memory-bound")
    source = "short convolutions of Mamba-130M to 2.8B, Jamba, and gated delta nets of Qwen3-Next"

    args = (
        TensorArg("x", torch.float16, shape="batch, channels, time"),
        TensorArg("weight", torch.float16, shape="channels, taps"),
        TensorArg("bias", torch.float16, shape="channels"),
    )
    outputs = (Output("out", torch.float16, shape="batch, channels, time"),)
    axes = (
        Axis("batch", 1, 4096),
        Axis("channels", 1, 1 << 16),
        Axis("time", 1, 1 << 17),
        Axis("taps", 1, 8),
    )
    train = points(
        "batch channels time taps",
        full=[
            (8, 1536, 2048, 4),
            (4, 5120, 2048, 4),
            (1, 8192, 4096, 4),
            (16, 2048, 1024, 4),
            (64, 5120, 128, 4),
        ],
        sim=[(1, 96, 2048, 4), (1, 256, 1024, 4), (2, 512, 200, 4), (8, 256, 128, 4)],
    )
    production = points(
        "batch channels time taps",
        full=[(2, 3072, 8192, 4), (8, 4096, 1000, 3), (32, 1792, 512, 4)],
        sim=[(1, 48, 4096, 4), (1, 300, 1000, 3), (4, 112, 512, 4)],
    )
    adversarial = ({"batch": 2, "channels": 3, "time": 2, "taps": 4},)
    distributions = ("normal", "large", "tiny", "structured")

    def elements(self, dims: Dims) -> int:
        """Elements of x."""
        return dims["batch"] * dims["channels"] * dims["time"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x by the distribution, weights over the root of the taps, and biases."""
        batch, channels, time, taps = (workload.dims[axis.name] for axis in self.axes)
        weight = torch.randn((channels, taps), generator=generator) * taps**-0.5
        return {
            "x": draw((batch, channels, time), torch.float16, workload.distribution, generator),
            "weight": weight.half(),
            "bias": (0.5 * torch.randn(channels, generator=generator)).half(),
        }

    def oracle(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """One shifted copy of x a tap."""
        time, taps = x.shape[2], weight.shape[1]
        padded = F.pad(x.double(), (taps - 1, 0))
        y = bias.double()[:, None].expand(x.shape)
        for j in range(taps):
            y = y + weight.double()[:, j : j + 1] * padded[:, :, j : j + time]
        return (y * torch.sigmoid(y),)

    def reference(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """A grouped convolution and the activation, as Mamba's slow path writes them."""
        channels, taps = weight.shape
        y = F.conv1d(x, weight[:, None], bias, 1, taps - 1, 1, channels)
        return (F.silu(y[:, :, : x.shape[2]]),)

    def flops(self, dims: Dims) -> int:
        """A product and an addition a tap, and the activation."""
        return self.elements(dims) * (2 * dims["taps"] + 4)


PROBLEM = CausalConv1d()
