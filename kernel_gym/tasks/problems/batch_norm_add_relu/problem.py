"""Batch normalisation at inference, fused with a residual and a ReLU."""

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


class BatchNormAddRelu(Problem):
    """`relu((x - mean) / sqrt(variance + eps) * weight + bias + residual)`, by channel."""

    name = "batch_norm_add_relu"
    summary = "batch norm with given statistics, residual and ReLU"
    category = "Normalization"
    level = 2
    tags = ("vision", "memory-bound")
    source = "ends of the bottleneck blocks of ResNet-50 at 224 x 224"

    args = (
        TensorArg("x", torch.float16, shape="batch, channels, pixels"),
        TensorArg("residual", torch.float16, shape="batch, channels, pixels"),
        TensorArg("mean", torch.float32, shape="channels"),
        TensorArg("variance", torch.float32, shape="channels"),
        TensorArg("weight", torch.float32, shape="channels"),
        TensorArg("bias", torch.float32, shape="channels"),
        ScalarArg("eps", float, values=(1e-5, 1e-3, 1e-4, 1e-2)),
    )
    outputs = (Output("out", torch.float16, shape="batch, channels, pixels"),)
    axes = (Axis("batch", 1, 4096), Axis("channels", 1, 8192), Axis("pixels", 1, 1 << 18))
    train = points(
        "batch channels pixels",
        full=[(64, 256, 3136), (64, 512, 784), (128, 1024, 196), (256, 2048, 49), (256, 64, 3136)],
        sim=[(1, 64, 3136), (1, 256, 784), (1, 1024, 196), (2, 2048, 49)],
    )
    production = points(
        "batch channels pixels",
        full=[(128, 256, 784), (64, 2048, 100), (32, 128, 12544)],
        sim=[(2, 128, 784), (1, 2048, 100), (1, 16, 12544)],
    )
    adversarial = ({"batch": 2, "channels": 3, "pixels": 1},)
    distributions = ("normal", "tiny", "sparse", "structured")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x, a normal residual, and variances between 1e-5 and 1, so that eps counts."""
        shape = (workload.dims["batch"], workload.dims["channels"], workload.dims["pixels"])
        channels = shape[1]
        return {
            "x": draw(shape, torch.float16, workload.distribution, generator),
            "residual": torch.randn(shape, generator=generator).half(),
            "mean": 0.1 * torch.randn(channels, generator=generator),
            "variance": 10 ** (-5 * torch.rand(channels, generator=generator)),
            "weight": 1 + 0.3 * torch.randn(channels, generator=generator),
            "bias": 0.3 * torch.randn(channels, generator=generator),
            **self.scalars(workload),
        }

    def oracle(
        self,
        x: torch.Tensor,
        residual: torch.Tensor,
        mean: torch.Tensor,
        variance: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
        eps: float,
    ) -> tuple[torch.Tensor, ...]:
        """As the formula reads."""
        columns = (t.double()[:, None] for t in (mean, variance, weight, bias))
        m, v, w, b = columns
        return (((x.double() - m) / (v + eps).sqrt() * w + b + residual.double()).clamp(min=0),)

    def reference(
        self,
        x: torch.Tensor,
        residual: torch.Tensor,
        mean: torch.Tensor,
        variance: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
        eps: float,
    ) -> tuple[torch.Tensor, ...]:
        """PyTorch's operators in float32, rounded once.

        Not `F.batch_norm`: some releases refuse an eps of 0 on a GPU, which a control tries.
        """
        scale = weight * torch.rsqrt(variance + eps)
        normal = (x.float() - mean[:, None]) * scale[:, None] + bias[:, None]
        return (F.relu(normal + residual.float()).half(),)

    def flops(self, dims: Dims) -> int:
        """Subtract, multiply, add twice and compare for each element."""
        return 5 * self.elements(dims)


PROBLEM = BatchNormAddRelu()
