"""Matrix times vector in half precision."""

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


class Matvec(Problem):
    """`out = a @ x`, accumulated in float32."""

    name = "matvec"
    summary = "matrix times vector, float16, accumulated in float32"
    category = "LinearAlgebra"
    level = 2
    tags = ("decoder-llm", "memory-bound", "reduction")
    source = "one-token decode of Llama-2-7B, Llama-3-8B, Qwen2.5-7B and GPT-2-XL"

    args = (
        TensorArg("a", torch.float16, shape="rows, cols"),
        TensorArg("x", torch.float16, shape="cols"),
    )
    outputs = (Output("out", torch.float16, shape="rows"),)
    axes = (Axis("rows", 1, 1 << 18), Axis("cols", 1, 1 << 16))
    train = points(
        "rows cols",
        full=[(14336, 4096), (4096, 14336), (32000, 4096), (18944, 3584), (6400, 1600)],
        sim=[(448, 1024), (256, 3584), (1000, 512), (592, 448)],
    )
    production = points(
        "rows cols",
        full=[(128256, 4096), (11008, 4096), (28672, 8192)],
        sim=[(2004, 256), (344, 1024), (448, 2048)],
    )
    adversarial = ({"rows": 3, "cols": 1}, {"rows": 1, "cols": 257})
    distributions = ("normal", "uniform", "sparse", "heavy_tail")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws a float16[rows, cols] over sqrt(cols) and x float16[cols]."""
        rows, cols = workload.dims["rows"], workload.dims["cols"]
        a = draw((rows, cols), torch.float32, workload.distribution, generator) * cols**-0.5
        return {"a": a.half(), "x": draw((cols,), torch.float16, "normal", generator)}

    def oracle(self, a: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        return (a.double() @ x.double(),)

    def reference(self, a: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (torch.mm(a, x[:, None])[:, 0],)

    def flops(self, dims: Dims) -> int:
        """A product and an addition for each element of a."""
        return 2 * self.elements(dims)


PROBLEM = Matvec()
