"""Matrix transpose into a new contiguous matrix."""

from __future__ import annotations

import torch

from kernel_gym.tasks.distributions import draw
from kernel_gym.tasks.problem import (
    Axis,
    Check,
    Dims,
    Output,
    Problem,
    TensorArg,
    Value,
    points,
)
from kernel_gym.tasks.workload import Workload


class Transpose(Problem):
    """`out[j, i] = x[i, j]`, contiguous."""

    name = "transpose"
    summary = "transpose of a matrix, written out contiguously"
    category = "Random-and-layout"
    level = 1
    tags = ("decoder-llm", "vision", "memory-bound", "layout")
    source = "weights of Llama-2-7B and GPT-2 (padded vocabulary), NCHW to NHWC of ResNet-50 stages"

    args = (TensorArg("x", torch.float32, shape="rows, cols"),)
    outputs = (Output("out", torch.float32, check=Check.EXACT, shape="cols, rows"),)
    axes = (Axis("rows", 1, 1 << 17), Axis("cols", 1, 1 << 17))
    train = points(
        "rows cols",
        full=[(4096, 4096), (11008, 4096), (768, 3072), (50304, 768), (2048, 3136)],
        sim=[(640, 768), (1024, 512), (256, 1536), (512, 784)],
    )
    production = points(
        "rows cols",
        full=[(8192, 3072), (5120, 13824), (1024, 196)],
        sim=[(1024, 400), (480, 960), (1536, 196)],
    )
    adversarial = ({"rows": 1, "cols": 130},)
    distributions = ("normal", "range_ends", "structured", "tiny")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x float32[rows, cols]."""
        shape = (workload.dims["rows"], workload.dims["cols"])
        return {"x": draw(shape, torch.float32, workload.distribution, generator)}

    def oracle(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Exact in any type."""
        return (x.double().t().contiguous(),)

    def reference(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """A transposed view, copied."""
        return (x.t().contiguous(),)

    def flops(self, dims: Dims) -> int:
        """None."""
        return 0


PROBLEM = Transpose()
