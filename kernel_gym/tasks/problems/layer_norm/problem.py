"""Layer normalisation with weight and bias."""

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


class LayerNorm(Problem):
    """`out = (x - mean) / sqrt(var + eps) * weight + bias` over the last axis."""

    name = "layer_norm"
    summary = "layer normalisation over the last axis, with weight and bias, biased variance"
    category = "Normalization"
    level = 2
    tags = ("vision", "audio", "diffusion", "memory-bound")
    source = "GPT-2, BERT-large, Whisper-large, ViT-L, DiT-XL, OPT-66B"

    args = (
        TensorArg("x", torch.float16, shape="rows, cols"),
        TensorArg("weight", torch.float16, shape="cols"),
        TensorArg("bias", torch.float16, shape="cols"),
        ScalarArg("eps", float, values=(1e-5, 1e-3, 1e-6, 1e-2)),
    )
    outputs = (Output("out", torch.float16, shape="rows, cols"),)
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 2, 1 << 16))
    train = points(
        "rows cols",
        full=[(8192, 768), (16384, 1024), (12000, 1280), (8192, 1152), (4096, 9216)],
        sim=[(256, 768), (128, 1024), (96, 1280), (24, 9216)],
    )
    production = points(
        "rows cols",
        full=[(8192, 1600), (8192, 4096), (2048, 12288)],
        sim=[(128, 1600), (64, 4096), (16, 12288)],
    )
    adversarial = ({"rows": 1, "cols": 3},)
    distributions = ("normal", "tiny", "offset", "heavy_tail")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x [rows, cols], weight around 1 and bias around 0, [cols]; all float16."""
        rows, cols = workload.dims["rows"], workload.dims["cols"]
        return {
            "x": draw((rows, cols), torch.float16, workload.distribution, generator),
            "weight": (1 + 0.3 * torch.randn(cols, generator=generator)).half(),
            "bias": (0.3 * torch.randn(cols, generator=generator)).half(),
            **self.scalars(workload),
        }

    def oracle(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
    ) -> tuple[torch.Tensor, ...]:
        """Centre first, then the mean of squares."""
        centred = x.double() - x.double().mean(1, keepdim=True)
        scale = torch.rsqrt(centred.square().mean(1, keepdim=True) + eps)
        return (centred * scale * weight.double() + bias.double(),)

    def reference(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
    ) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (F.layer_norm(x, (x.shape[1],), weight, bias, eps),)

    def flops(self, dims: Dims) -> int:
        """Mean 1, variance 3, normalise 4 for each element."""
        return 8 * self.elements(dims)


PROBLEM = LayerNorm()
