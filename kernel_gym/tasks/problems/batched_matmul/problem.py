"""Batched matrix product in half precision."""

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


class BatchedMatmul(Problem):
    """`out[i] = a[i] @ b[i]`, accumulated in float32."""

    name = "batched_matmul"
    summary = "matrix product of each pair of a batch, float16, accumulated in float32"
    category = "MatMul"
    level = 3
    tags = ("decoder-llm", "vision", "protein", "compute-bound")
    source = "attention products of BERT-base, GPT-2, ViT-B/16 and T5-large, heads x batch"

    args = (
        TensorArg("a", torch.float16, shape="batch, m, k"),
        TensorArg("b", torch.float16, shape="batch, k, n"),
    )
    outputs = (Output("out", torch.float16, shape="batch, m, n"),)
    axes = (
        Axis("batch", 1, 4096),
        Axis("m", 1, 1 << 14),
        Axis("n", 1, 1 << 14),
        Axis("k", 1, 1 << 14),
    )
    train = points(
        "batch m n k",
        full=[(96, 512, 64, 512), (192, 512, 512, 64), (48, 1024, 1024, 64), (384, 197, 64, 197)],
        sim=[(4, 128, 64, 128), (6, 128, 128, 64), (2, 256, 192, 64), (3, 197, 64, 197)],
    )
    production = points(
        "batch m n k",
        full=[(256, 512, 64, 512), (32, 2048, 2048, 128), (128, 577, 577, 64)],
        sim=[(5, 128, 64, 160), (2, 256, 160, 128), (2, 145, 145, 64)],
    )
    adversarial = ({"batch": 2, "m": 3, "n": 5, "k": 1},)
    distributions = ("normal", "uniform", "sparse", "structured")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws a float16[batch, m, k] and b float16[batch, k, n], b over sqrt(k)."""
        batch, m, n, k = (workload.dims[axis.name] for axis in self.axes)
        a = draw((batch, m, k), torch.float16, workload.distribution, generator)
        b = draw((batch, k, n), torch.float32, workload.distribution, generator)
        return {"a": a, "b": (b * k**-0.5).half()}

    def oracle(self, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        return (a.double() @ b.double(),)

    def reference(self, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (torch.bmm(a, b),)

    def flops(self, dims: Dims) -> int:
        """A product and an addition for each multiply-add."""
        return 2 * self.elements(dims)


PROBLEM = BatchedMatmul()
