"""Residual addition, RMS norm and quantisation to int8 in one pass."""

from __future__ import annotations

import torch

from kernel_gym.tasks.distributions import draw, draw_mask
from kernel_gym.tasks.problem import (
    Axis,
    Check,
    Dims,
    Output,
    ScalarArg,
    TensorArg,
    Value,
    points,
)
from kernel_gym.tasks.shared.quantised import Quantised
from kernel_gym.tasks.workload import Workload


class AddRmsNormQuant(Quantised):
    """`h = x + residual`, `y = h / sqrt(mean(h^2) + eps) * weight`, y as int8 codes with a scale.

    `scale[i] = max(max|y[i]|, 1e-8) / 127`, `q[i] = round(y[i] / scale[i])`; h is returned too.
    """

    name = "add_rms_norm_quant"
    summary = "int8 codes and row scales of rms_norm(x + residual) * weight, and the sum itself"
    category = "Quantization"
    level = 3
    tags = ("decoder-llm", "memory-bound", "int8")
    source = "hidden sizes of Llama-2-7B, Llama-3-70B, Qwen2.5-7B and Mistral-7B (W8A8 serving)"
    domain = "All floating-point inputs are finite. A row may be all zeros."

    args = (
        TensorArg("x", torch.float16, shape="rows, cols"),
        TensorArg("residual", torch.float16, shape="rows, cols"),
        TensorArg("weight", torch.float16, shape="cols"),
        ScalarArg("eps", float, values=(1e-5, 1e-3, 1e-6, 1e-2)),
    )
    outputs = (
        Output("q", torch.int8, check=Check.CUSTOM, shape="rows, cols"),
        Output("scale", torch.float32, check=Check.CUSTOM, shape="rows"),
        Output("residual_out", torch.float16, shape="rows, cols"),
    )
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 1, 1 << 15))
    train = points(
        "rows cols",
        full=[(8192, 4096), (8192, 3584), (4096, 8192), (256, 4096)],
        sim=[(64, 4096), (64, 3584), (24, 8192), (192, 1024)],
    )
    production = points(
        "rows cols",
        full=[(4096, 5120), (8192, 2048), (4096, 6144)],
        sim=[(48, 5120), (96, 2048), (32, 6144)],
    )
    adversarial = ({"rows": 2, "cols": 1},)
    distributions = ("normal", "tiny", "heavy_tail", "large")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x and residual [rows, cols], some rows 0, and a weight around 1 [cols], float16."""
        rows, cols = workload.dims["rows"], workload.dims["cols"]
        x = draw((rows, cols), torch.float16, workload.distribution, generator)
        residual = draw((rows, cols), torch.float16, workload.distribution, generator)
        empty = draw_mask((rows, 1), 0.1, generator)
        x, residual = x.masked_fill(empty, 0), residual.masked_fill(empty, 0)
        weight = (1 + 0.3 * torch.randn(cols, generator=generator)).half()
        return {"x": x, "residual": residual, "weight": weight, **self.scalars(workload)}

    def oracle(
        self, x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
    ) -> tuple[torch.Tensor, ...]:
        """Nothing is rounded before the codes."""
        h = x.double() + residual.double()
        y = h * torch.rsqrt(h.square().mean(1, keepdim=True) + eps) * weight.double()
        scale = y.abs().amax(1).clamp(min=1e-8) / 127
        return torch.round(y / scale[:, None]).long(), scale, h

    def reference(
        self, x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
    ) -> tuple[torch.Tensor, ...]:
        """Operator by operator in float32."""
        h = x.float() + residual.float()
        y = h * torch.rsqrt(h.pow(2).mean(1, keepdim=True) + eps) * weight.float()
        scale = y.abs().amax(dim=1).clamp(min=1e-8) / 127
        return torch.round(y / scale[:, None]).to(torch.int8), scale, h.half()

    def flops(self, dims: Dims) -> int:
        """Add 1, square and sum 2, scale 2, magnitude, comparison, scaling and rounding 4."""
        return 9 * self.elements(dims)


PROBLEM = AddRmsNormQuant()
