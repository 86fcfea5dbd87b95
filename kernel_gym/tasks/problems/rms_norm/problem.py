"""Root-mean-square normalisation."""

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


class RmsNorm(Problem):
    """`x / sqrt(mean(x^2) + eps) * weight` over the last axis."""

    name = "rms_norm"
    summary = "out = x / sqrt(mean(x^2) + eps) * weight over the last axis"
    category = "Normalization"
    level = 1
    tags = ("decoder-llm", "moe", "memory-bound")
    source = "hidden sizes of Llama-2-7B, Mistral-7B, Gemma-2B, Qwen2.5-7B, and heads of Qwen3-8B"
    rounding = (
        "Compute in float32 and round the output once, or round the normalised row to float16 "
        "before the product with the weight, as Llama does: both are right."
    )

    args = (
        TensorArg("x", torch.float16, shape="rows, cols"),
        TensorArg("weight", torch.float16, shape="cols"),
        ScalarArg("eps", float, values=(1e-5, 1e-3, 1e-6, 1e-2)),
    )
    outputs = (Output("out", torch.float16, shape="rows, cols"),)
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 1, 1 << 16))
    train = points(
        "rows cols",
        full=[(8192, 4096), (8192, 3584), (16384, 2048), (131072, 128), (64, 4096)],
        sim=[(64, 4096), (64, 3584), (96, 2048), (512, 128)],
    )
    production = points(
        "rows cols",
        full=[(8192, 5120), (4096, 8192), (8192, 7168)],
        sim=[(40, 5120), (24, 8192), (32, 7168)],
    )
    adversarial = ({"rows": 2, "cols": 1},)
    distributions = ("normal", "tiny", "heavy_tail", "large")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x float16[rows, cols] and a weight around 1."""
        rows, cols = workload.dims["rows"], workload.dims["cols"]
        return {
            "x": draw((rows, cols), torch.float16, workload.distribution, generator),
            "weight": (1 + 0.3 * torch.randn(cols, generator=generator)).half(),
            **self.scalars(workload),
        }

    def oracle(self, x: torch.Tensor, weight: torch.Tensor, eps: float) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        y = x.double()
        return (y / (y.square().mean(1, keepdim=True) + eps).sqrt() * weight.double(),)

    def reference(
        self, x: torch.Tensor, weight: torch.Tensor, eps: float
    ) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (F.rms_norm(x, (x.shape[1],), weight, eps),)

    def yardstick(
        self, x: torch.Tensor, weight: torch.Tensor, eps: float
    ) -> tuple[torch.Tensor, ...]:
        """Rounded before the product with the weight, as Llama's own code does."""
        wide = x.float()
        scale = torch.rsqrt(wide.square().mean(1, keepdim=True) + eps)
        return ((wide * scale).half() * weight,)

    def flops(self, dims: Dims) -> int:
        """Square and add, then two products for each element."""
        return 4 * self.elements(dims)


PROBLEM = RmsNorm()
