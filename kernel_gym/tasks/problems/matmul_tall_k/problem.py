"""Matrix product with few outputs and a long sum, as weight gradients and decode steps have it."""

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


class MatmulTallK(Problem):
    """`out = a @ b` with k far above m and n: parallel only if the sum is split."""

    name = "matmul_tall_k"
    summary = "a @ b with small m, n and long k (float16 in, float32 accumulation, float16 out)"
    category = "MatMul"
    level = 4
    tags = ("decoder-llm", "moe", "training", "memory-bound", "split-k")
    source = "decode steps of Llama-2-7B, Llama-3-70B (tensor parallel), LoRA and router gradients"

    args = (
        TensorArg("a", torch.float16, shape="m, k"),
        TensorArg("b", torch.float16, shape="k, n"),
    )
    outputs = (Output("out", torch.float16, shape="m, n"),)
    axes = (Axis("m", 1, 256), Axis("n", 1, 1024), Axis("k", 1, 1 << 20))
    train = points(
        "m n k",
        full=[(16, 512, 28672), (64, 64, 262144), (32, 256, 131072), (128, 128, 131072)],
        sim=[(16, 128, 8192), (64, 64, 8192), (32, 64, 12288), (128, 32, 6144)],
    )
    production = points(
        "m n k",
        full=[(16, 1024, 14336), (256, 64, 65536), (8, 160, 524288)],
        sim=[(16, 256, 3584), (64, 16, 16384), (8, 160, 8192)],
    )
    adversarial = ({"m": 1, "n": 2, "k": 1031}, {"m": 3, "n": 5, "k": 1})
    distributions = ("normal", "uniform", "sparse", "heavy_tail")

    def legal(self, dims: Dims) -> bool:
        """On its axes, with no more than 2^15 outputs."""
        return super().legal(dims) and dims["m"] * dims["n"] <= 1 << 15

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws a float16[m, k] and b float16[k, n], each over the fourth root of k."""
        m, n, k = (workload.dims[axis] for axis in "mnk")
        scale = k**-0.25
        a = draw((m, k), torch.float32, workload.distribution, generator) * scale
        b = draw((k, n), torch.float32, workload.distribution, generator) * scale
        return {"a": a.half(), "b": b.half()}

    def oracle(self, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        return (a.double() @ b.double(),)

    def reference(self, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (a @ b,)

    def flops(self, dims: Dims) -> int:
        """A product and an addition for each multiply-add."""
        return 2 * self.elements(dims)


PROBLEM = MatmulTallK()
