"""GEGLU gate of a feed-forward layer, with the exact GELU."""

from __future__ import annotations

import math

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


class Geglu(Problem):
    """`out = x[:, :cols] * gelu(x[:, cols:])`, where `gelu(g) = g (1 + erf(g / sqrt(2))) / 2`."""

    name = "geglu"
    summary = "first half of each row times the exact GELU of the second half"
    category = "Activation"
    level = 2
    tags = ("diffusion", "decoder-llm", "memory-bound")
    source = "feed-forward layers of the Stable Diffusion U-Nets, T5-v1.1-XL, ModernBERT-base"

    args = (TensorArg("x", torch.bfloat16, shape="rows, 2 * cols"),)
    outputs = (Output("out", torch.bfloat16, shape="rows, cols"),)
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 1, 1 << 16))
    train = points(
        "rows cols",
        full=[(32768, 1280), (8192, 2560), (4096, 5120), (8192, 1152), (2048, 10240)],
        sim=[(128, 1280), (64, 2560), (32, 5120), (100, 1152)],
    )
    production = points(
        "rows cols",
        full=[(16384, 2048), (8192, 2624), (4096, 2816)],
        sim=[(96, 2048), (60, 2624), (48, 2816)],
    )
    adversarial = ({"rows": 2, "cols": 3},)
    distributions = ("normal", "negative", "offset", "heavy_tail")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x bfloat16[rows, 2 * cols]."""
        shape = (workload.dims["rows"], 2 * workload.dims["cols"])
        return {"x": draw(shape, torch.bfloat16, workload.distribution, generator)}

    def oracle(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """By erfc, which does not cancel for negative gates."""
        value, gate = x.double().chunk(2, dim=1)
        return (value * 0.5 * gate * torch.special.erfc(-gate / math.sqrt(2)),)

    def reference(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The activation and the product in float32, rounded once."""
        value, gate = x.chunk(2, dim=1)
        return ((value.float() * F.gelu(gate.float())).to(torch.bfloat16),)

    def flops(self, dims: Dims) -> int:
        """Error function 1, add and four products for each output."""
        return 6 * self.elements(dims)


PROBLEM = Geglu()
