"""Residual addition fused with RMS normalisation."""

from __future__ import annotations

import torch

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


class AddRmsNorm(Problem):
    """`h = x + residual`, then `h / sqrt(mean(h^2) + eps) * weight`; both are returned."""

    name = "add_rms_norm"
    summary = "out = rms_norm(x + residual) * weight over the last axis, and the sum itself"
    category = "Fusion"
    level = 2
    tags = ("decoder-llm", "moe", "memory-bound")
    source = "hidden sizes of Qwen2.5-7B, Llama-2-7B and 13B, Llama-3-70B, DeepSeek-V3"
    rounding = (
        "Round the sum, then compute in float32 and round the output once, or round the "
        "normalised row before the product with the weight, as Llama does: both are right."
    )

    args = (
        TensorArg("x", torch.float16, shape="rows, cols"),
        TensorArg("residual", torch.float16, shape="rows, cols"),
        TensorArg("weight", torch.float16, shape="cols"),
        ScalarArg("eps", float, values=(1e-5, 1e-3, 1e-6, 1e-2)),
    )
    outputs = (
        Output("out", torch.float16, shape="rows, cols"),
        Output("residual_out", torch.float16, shape="rows, cols"),
    )
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 1, 1 << 16))
    train = points(
        "rows cols",
        full=[(4096, 4096), (8192, 3584), (2048, 8192), (4096, 5120), (64, 4096)],
        sim=[(64, 4096), (128, 3584), (32, 8192), (256, 1024)],
    )
    production = points(
        "rows cols",
        full=[(4096, 7168), (8192, 2048), (1024, 6144)],
        sim=[(48, 7168), (128, 2048), (48, 5120)],
    )
    adversarial = ({"rows": 2, "cols": 1},)
    distributions = ("normal", "tiny", "heavy_tail", "large")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x and residual [rows, cols], weight around 1 [cols], all float16."""
        rows, cols = workload.dims["rows"], workload.dims["cols"]
        x = draw((rows, cols), torch.float16, workload.distribution, generator)
        residual = draw((rows, cols), torch.float16, workload.distribution, generator)
        weight = (1 + 0.3 * torch.randn(cols, generator=generator)).half()
        return {"x": x, "residual": residual, "weight": weight, **self.scalars(workload)}

    def oracle(
        self, x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
    ) -> tuple[torch.Tensor, ...]:
        """The sum is not rounded before it is normalised."""
        h = x.double() + residual.double()
        scale = torch.rsqrt(h.square().mean(1, keepdim=True) + eps)
        return h * scale * weight.double(), h

    def reference(
        self, x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
    ) -> tuple[torch.Tensor, ...]:
        """As decoder models write it: the sum in float16, the norm in float32."""
        h = x + residual
        wide = h.float()
        scale = torch.rsqrt(wide.pow(2).mean(1, keepdim=True) + eps)
        return (wide * scale).half() * weight, h

    def flops(self, dims: Dims) -> int:
        """Add 1, square and sum 2, scale 2 for each element."""
        return 5 * self.elements(dims)


PROBLEM = AddRmsNorm()
