"""GELU in its tanh form."""

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


class Gelu(Problem):
    """`0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`, element by element."""

    name = "gelu"
    summary = "GELU, tanh form: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))"
    category = "Activation"
    level = 1
    tags = ("decoder-llm", "vision", "diffusion", "memory-bound")
    source = "feed-forward layers of GPT-2, GPT-J-6B, Gemma-2B, DiT-XL, SigLIP-L"

    args = (TensorArg("x", torch.bfloat16, shape="rows, cols"),)
    outputs = (Output("out", torch.bfloat16, shape="rows, cols"),)
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 1, 1 << 17))
    train = points(
        "rows cols",
        full=[(8192, 3072), (2048, 16384), (8192, 4608), (4096, 6400), (16384, 4096)],
        sim=[(96, 3072), (16, 16384), (64, 4608), (256, 1024)],
    )
    production = points(
        "rows cols",
        full=[(8192, 4304), (4096, 5120), (1024, 24576)],
        sim=[(64, 4304), (48, 5120), (16, 24576)],
    )
    adversarial = ({"rows": 3, "cols": 1},)
    distributions = ("normal", "large", "negative", "heavy_tail")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x bfloat16[rows, cols]."""
        shape = (workload.dims["rows"], workload.dims["cols"])
        return {"x": draw(shape, torch.bfloat16, workload.distribution, generator)}

    def oracle(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """By the sigmoid, which equals the tanh form and does not cancel."""
        y = x.double()
        return (y * torch.sigmoid(2 * math.sqrt(2 / math.pi) * (y + 0.044715 * y**3)),)

    def reference(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (F.gelu(x, approximate="tanh"),)

    def flops(self, dims: Dims) -> int:
        """Polynomial 4, tanh 1, blend 3 for each element."""
        return 8 * self.elements(dims)


PROBLEM = Gelu()
