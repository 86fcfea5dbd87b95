"""Matrix product in half precision."""

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


class Matmul(Problem):
    """`out = a @ b`, accumulated in float32."""

    name = "matmul"
    summary = "matrix product a @ b of float16 matrices, accumulated in float32"
    category = "MatMul"
    level = 3
    tags = ("decoder-llm", "vision", "compute-bound")
    source = "projections of Llama-2-7B, Llama-3-8B, GPT-2 and ViT-B"

    args = (
        TensorArg("a", torch.float16, shape="m, k"),
        TensorArg("b", torch.float16, shape="k, n"),
    )
    outputs = (Output("out", torch.float16, shape="m, n"),)
    axes = (Axis("m", 1, 1 << 16), Axis("n", 1, 1 << 17), Axis("k", 1, 1 << 15))
    train = points(
        "m n k",
        full=[
            (4096, 4096, 4096),
            (2048, 11008, 4096),
            (2048, 4096, 14336),
            (8192, 2304, 768),
            (16, 4096, 4096),
        ],
        sim=[(256, 256, 512), (384, 256, 256), (128, 384, 768), (256, 192, 384)],
    )
    production = points(
        "m n k",
        full=[(4096, 6144, 4096), (1576, 3072, 768), (64, 14336, 4096)],
        sim=[(256, 384, 320), (197, 384, 384), (64, 512, 512)],
    )
    adversarial = ({"m": 3, "n": 5, "k": 1},)
    distributions = ("normal", "uniform", "sparse", "structured")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws a float16[m, k] and b float16[k, n], b over sqrt(k) as weights are."""
        m, n, k = (workload.dims[axis] for axis in "mnk")
        a = draw((m, k), torch.float16, workload.distribution, generator)
        b = draw((k, n), torch.float32, workload.distribution, generator)
        return {"a": a, "b": (b * k**-0.5).half()}

    def oracle(self, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        return (a.double() @ b.double(),)

    def reference(self, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (a @ b,)

    def flops(self, dims: Dims) -> int:
        """A product and an addition for each multiply-add."""
        return 2 * self.elements(dims)


PROBLEM = Matmul()
