"""Inclusive prefix sum along rows."""

from __future__ import annotations

import torch

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


class Cumsum(Problem):
    """`out[i, j] = x[i, 0] + ... + x[i, j]`, accumulated in float32."""

    name = "cumsum"
    summary = "inclusive prefix sum along the last axis, accumulated in float32"
    category = "Reduce-and-scan"
    level = 3
    tags = ("decoder-llm", "state-space", "memory-bound", "scan")
    source = "top-p sampling over Llama-2 and GPT-2 vocabularies, decays of Mamba-2 sequences"

    args = (TensorArg("x", torch.bfloat16, shape="rows, cols"),)
    outputs = (Output("out", torch.bfloat16, shape="rows, cols"),)
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 1, 1 << 18))
    train = points(
        "rows cols",
        full=[(256, 32000), (128, 50257), (4096, 2048), (1280, 4096), (65536, 256)],
        sim=[(32, 8000), (16, 12564), (128, 2048), (80, 4096)],
    )
    production = points(
        "rows cols",
        full=[(64, 128256), (2048, 8192), (8192, 1024)],
        sim=[(8, 32064), (32, 8192), (256, 1024)],
    )
    adversarial = ({"rows": 3, "cols": 1},)
    distributions = ("normal", "uniform", "offset", "sparse")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x bfloat16[rows, cols]."""
        shape = (workload.dims["rows"], workload.dims["cols"])
        return {"x": draw(shape, torch.bfloat16, workload.distribution, generator)}

    def oracle(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        return (x.double().cumsum(1),)

    def reference(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One PyTorch call, accumulated in float32."""
        return (torch.cumsum(x, dim=1),)

    def flops(self, dims: Dims) -> int:
        """One addition for each element."""
        return self.elements(dims)


PROBLEM = Cumsum()
