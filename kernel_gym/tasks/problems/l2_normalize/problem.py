"""Normalisation of vectors to length one, softened near zero."""

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


class L2Normalize(Problem):
    """`x / sqrt(sum(x^2) + eps)` over the last axis."""

    name = "l2_normalize"
    summary = "out = x / sqrt(sum(x^2) + eps) over the last axis"
    category = "Normalization"
    level = 1
    tags = ("decoder-llm", "state-space", "vision", "recommender", "memory-bound")
    source = (
        "queries and keys of gated delta nets (Qwen3-Next), embeddings of CLIP-L, BGE-M3, DINOv2-g"
    )

    args = (
        TensorArg("x", torch.float16, shape="rows, cols"),
        ScalarArg("eps", float, values=(1e-5, 1e-3, 1e-6, 1e-2)),
    )
    outputs = (Output("out", torch.float16, shape="rows, cols"),)
    axes = (Axis("rows", 1, 1 << 21), Axis("cols", 1, 1 << 16))
    train = points(
        "rows cols",
        full=[(262144, 128), (65536, 768), (65536, 1024), (131072, 256), (16384, 1536)],
        sim=[(1024, 128), (256, 768), (200, 1024), (512, 256)],
    )
    production = points(
        "rows cols",
        full=[(524288, 64), (32768, 512), (16384, 4096)],
        sim=[(1500, 64), (400, 512), (48, 4096)],
    )
    adversarial = ({"rows": 3, "cols": 1},)
    distributions = ("normal", "tiny", "heavy_tail", "sparse")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x float16[rows, cols]. Epsilons are not small where the data is `tiny`."""
        shape = (workload.dims["rows"], workload.dims["cols"])
        x = draw(shape, torch.float16, workload.distribution, generator)
        return {"x": x, **self.scalars(workload)}

    def oracle(self, x: torch.Tensor, eps: float) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        y = x.double()
        return (y * torch.rsqrt(y.square().sum(1, keepdim=True) + eps),)

    def reference(self, x: torch.Tensor, eps: float) -> tuple[torch.Tensor, ...]:
        """Operator by operator in float32, rounded once."""
        wide = x.float()
        return ((wide * torch.rsqrt(wide.pow(2).sum(1, keepdim=True) + eps)).half(),)

    def flops(self, dims: Dims) -> int:
        """Square, add and scale for each element."""
        return 3 * self.elements(dims)


PROBLEM = L2Normalize()
