"""Bias, GELU and residual addition after a layer."""

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


class BiasResidualGelu(Problem):
    """`out = residual + gelu(x + bias)`, GELU by the error function."""

    name = "bias_residual_gelu"
    summary = "residual + gelu(x + bias), exact GELU (erf), float16"
    category = "Fusion"
    level = 1
    tags = ("vision", "audio", "diffusion", "memory-bound", "pointwise")
    source = "BERT-large, ViT-L/16, Whisper-large-v3 and ConvNeXt-B widths"

    args = (
        TensorArg("x", torch.float16, shape="rows, cols"),
        TensorArg("bias", torch.float16, shape="cols"),
        TensorArg("residual", torch.float16, shape="rows, cols"),
    )
    outputs = (Output("out", torch.float16, shape="rows, cols"),)
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 1, 1 << 16))
    train = points(
        "rows cols",
        full=[(16384, 1024), (12608, 4096), (6000, 1280), (50176, 512)],
        sim=[(256, 1024), (49, 4096), (150, 1280), (392, 512)],
    )
    production = points(
        "rows cols",
        full=[(16384, 3072), (8192, 5120), (100352, 256)],
        sim=[(64, 3072), (40, 5120), (784, 256)],
    )
    adversarial = ({"rows": 3, "cols": 1},)
    distributions = ("normal", "negative", "tiny", "large")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x, residual [rows, cols] and bias [cols], all float16 by the distribution.

        Under "negative" only x is around -3, where the forms of GELU differ; the others are tiny.
        """
        rows, cols = workload.dims["rows"], workload.dims["cols"]
        x = draw((rows, cols), torch.float16, workload.distribution, generator)
        kind = "tiny" if workload.distribution == "negative" else workload.distribution
        bias = draw((cols,), torch.float16, kind, generator)
        return {
            "x": x,
            "bias": bias,
            "residual": draw((rows, cols), torch.float16, kind, generator),
        }

    def oracle(
        self, x: torch.Tensor, bias: torch.Tensor, residual: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        return (residual.double() + F.gelu(x.double() + bias.double()),)

    def reference(
        self, x: torch.Tensor, bias: torch.Tensor, residual: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Three operators in float16."""
        return (residual + F.gelu(x + bias),)

    def flops(self, dims: Dims) -> int:
        """Two additions and about 10 for GELU for each element."""
        return 12 * self.elements(dims)


PROBLEM = BiasResidualGelu()
