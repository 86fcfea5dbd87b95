"""Bias by channel and hard swish."""

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


class BiasHardswish(Problem):
    """`y = x[n, c, :] + bias[c]`, then `y * clamp(y + 3, 0, 6) / 6`."""

    name = "bias_hardswish"
    summary = "y = x + bias[channel]; out = y * clamp(y + 3, 0, 6) / 6"
    category = "Activation"
    level = 2
    tags = ("vision", "memory-bound")
    source = "expansion layers of MobileNetV3-Large at 224 x 224"

    args = (
        TensorArg("x", torch.float16, shape="batch, channels, pixels"),
        TensorArg("bias", torch.float16, shape="channels"),
    )
    outputs = (Output("out", torch.float16, shape="batch, channels, pixels"),)
    axes = (Axis("batch", 1, 4096), Axis("channels", 1, 8192), Axis("pixels", 1, 1 << 17))
    train = points(
        "batch channels pixels",
        full=[(64, 16, 12544), (128, 240, 784), (128, 200, 196), (256, 480, 196), (256, 960, 49)],
        sim=[(1, 16, 12544), (1, 240, 784), (2, 184, 196), (4, 960, 49)],
    )
    production = points(
        "batch channels pixels",
        full=[(128, 672, 196), (64, 1280, 49), (128, 120, 784)],
        sim=[(1, 672, 196), (2, 1280, 49), (2, 120, 784)],
    )
    adversarial = ({"batch": 2, "channels": 3, "pixels": 1},)
    distributions = ("normal", "uniform", "tiny", "structured")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x float16[batch, channels, pixels], three times as wide, and a normal bias."""
        shape = (workload.dims["batch"], workload.dims["channels"], workload.dims["pixels"])
        x = 3 * draw(shape, torch.float32, workload.distribution, generator)
        bias = torch.randn(shape[1], generator=generator)
        return {"x": x.half(), "bias": bias.half()}

    def oracle(self, x: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """As the formula reads; the sum is not rounded."""
        y = x.double() + bias.double()[:, None]
        return (y * (y + 3).clamp(0, 6) / 6,)

    def reference(self, x: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The sum and the activation, each in float16."""
        return (F.hardswish(x + bias[:, None]),)

    def flops(self, dims: Dims) -> int:
        """Two additions, two comparisons and two products for each element."""
        return 6 * self.elements(dims)


PROBLEM = BiasHardswish()
