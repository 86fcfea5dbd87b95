"""Matrix product with the second operand stored transposed, as a linear layer keeps it."""

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


class MatmulNt(Problem):
    """`out = x @ weight^T`, both operands with their long axis contiguous."""

    name = "matmul_nt"
    summary = "x @ weight.T of float16 matrices, weight stored [n, k], accumulated in float32"
    category = "MatMul"
    level = 3
    tags = ("decoder-llm", "moe", "compute-bound", "layout")
    source = "linear layers of Mistral-7B, Qwen2.5-7B, Phi-3-mini and Llama-3-8B"

    args = (
        TensorArg("x", torch.float16, shape="m, k"),
        TensorArg("weight", torch.float16, shape="n, k"),
    )
    outputs = (Output("out", torch.float16, shape="m, n"),)
    axes = (Axis("m", 1, 1 << 16), Axis("n", 1, 1 << 17), Axis("k", 1, 1 << 15))
    train = points(
        "m n k",
        full=[(4096, 6144, 4096), (2048, 3584, 18944), (4096, 9216, 3072), (64, 28672, 4096)],
        sim=[(256, 384, 256), (128, 224, 592), (256, 288, 192), (64, 512, 512)],
    )
    production = points(
        "m n k",
        full=[(2048, 5120, 5120), (1024, 4096, 14336), (8192, 2560, 2560)],
        sim=[(128, 320, 320), (64, 256, 896), (384, 160, 160)],
    )
    adversarial = ({"m": 5, "n": 3, "k": 1},)
    distributions = ("normal", "uniform", "sparse", "structured")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x float16[m, k] and weight float16[n, k], over sqrt(k)."""
        m, n, k = (workload.dims[axis] for axis in "mnk")
        x = draw((m, k), torch.float16, workload.distribution, generator)
        weight = draw((n, k), torch.float32, workload.distribution, generator)
        return {"x": x, "weight": (weight * k**-0.5).half()}

    def oracle(self, x: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        return (x.double() @ weight.double().t(),)

    def reference(self, x: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (F.linear(x, weight),)

    def flops(self, dims: Dims) -> int:
        """A product and an addition for each multiply-add."""
        return 2 * self.elements(dims)


PROBLEM = MatmulNt()
