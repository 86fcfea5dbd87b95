"""Residual addition fused with layer normalisation."""

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


class AddLayerNorm(Problem):
    """`total = x + residual`, `out = (total - mean) / sqrt(var + eps) * weight + bias`.

    Mean and variance are over the last axis. The variance is biased (divided by cols). Both `out`
    and `total` are returned.
    """

    name = "add_layer_norm"
    summary = "layer normalisation of x + residual, and the sum itself"
    category = "Normalization"
    level = 2
    tags = ("vision", "audio", "decoder-llm", "memory-bound", "reduction")
    source = "blocks of GPT-2, BERT-large, ViT-L/16, Whisper-large-v3 and wav2vec2-large"
    rounding = "Normalise the unrounded float32 sum, and round each output once, at the end."

    args = (
        TensorArg("x", torch.float16, shape="rows, cols"),
        TensorArg("residual", torch.float16, shape="rows, cols"),
        TensorArg("weight", torch.float16, shape="cols"),
        TensorArg("bias", torch.float16, shape="cols"),
        ScalarArg("eps", float, values=(1e-5, 1e-3, 1e-6, 1e-2)),
    )
    outputs = (
        Output("out", torch.float16, shape="rows, cols"),
        Output("total", torch.float16, shape="rows, cols"),
    )
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 2, 1 << 16))
    train = points(
        "rows cols",
        full=[(16384, 768), (16384, 1024), (12000, 1280), (25216, 1024), (8192, 1600)],
        sim=[(128, 768), (96, 1024), (64, 1280), (40, 1600)],
    )
    production = points(
        "rows cols",
        full=[(8192, 1152), (4096, 4544), (2048, 9216)],
        sim=[(80, 1152), (24, 4544), (12, 9216)],
    )
    adversarial = ({"rows": 1, "cols": 3},)
    distributions = ("normal", "tiny", "offset", "heavy_tail")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x and residual [rows, cols], weight around 1 and bias around 0, [cols]."""
        shape = (workload.dims["rows"], workload.dims["cols"])
        kind = workload.distribution
        return {
            "x": draw(shape, torch.float16, kind, generator),
            "residual": draw(shape, torch.float16, kind, generator),
            "weight": (1 + 0.3 * torch.randn(shape[1], generator=generator)).half(),
            "bias": (0.3 * torch.randn(shape[1], generator=generator)).half(),
            **self.scalars(workload),
        }

    def oracle(
        self,
        x: torch.Tensor,
        residual: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
        eps: float,
    ) -> tuple[torch.Tensor, ...]:
        """Centre first, then the mean of squares."""
        total = x.double() + residual.double()
        centred = total - total.mean(1, keepdim=True)
        scale = torch.rsqrt(centred.square().mean(1, keepdim=True) + eps)
        return centred * scale * weight.double() + bias.double(), total

    def reference(
        self,
        x: torch.Tensor,
        residual: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
        eps: float,
    ) -> tuple[torch.Tensor, ...]:
        """In float32, rounded at the end."""
        total = x.float() + residual.float()
        out = F.layer_norm(total, (total.shape[1],), weight.float(), bias.float(), eps)
        return out.half(), total.half()

    def flops(self, dims: Dims) -> int:
        """Sum 1, mean 1, variance 3, normalise 4 for each element."""
        return 9 * self.elements(dims)


PROBLEM = AddLayerNorm()
