"""Matrix product with the first operand transposed, as gradients of weights need it."""

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


class MatmulTn(Problem):
    """`out = grad^T @ x`: both operands lie with the summed axis, the tokens, in rows."""

    name = "matmul_tn"
    summary = "grad.T @ x of bfloat16 matrices, summed over their rows in float32"
    category = "MatMul"
    level = 3
    tags = ("decoder-llm", "vision", "training", "compute-bound", "layout")
    source = "weight gradients of Llama-3.2-1B, GPT-2, ViT-L/16 and DiT-XL/2"

    args = (
        TensorArg("grad", torch.bfloat16, shape="tokens, m"),
        TensorArg("x", torch.bfloat16, shape="tokens, n"),
    )
    outputs = (Output("out", torch.bfloat16, shape="m, n"),)
    axes = (Axis("m", 1, 1 << 16), Axis("n", 1, 1 << 16), Axis("tokens", 1, 1 << 20))
    train = points(
        "m n tokens",
        full=[(2048, 8192, 8192), (768, 3072, 16384), (1024, 1024, 25216), (4608, 1152, 16384)],
        sim=[(128, 512, 256), (96, 384, 512), (128, 128, 1024), (288, 144, 512)],
    )
    production = points(
        "m n tokens",
        full=[(3072, 1024, 12608), (512, 2048, 32768), (2304, 768, 8192)],
        sim=[(192, 128, 394), (64, 256, 1024), (288, 96, 512)],
    )
    adversarial = ({"m": 5, "n": 3, "tokens": 1},)
    distributions = ("normal", "uniform", "sparse", "structured")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws grad over the root of the tokens, so that sums are of order one, and x."""
        m, n, tokens = (workload.dims[axis.name] for axis in self.axes)
        grad = draw((tokens, m), torch.float32, workload.distribution, generator)
        return {
            "grad": (grad * tokens**-0.5).bfloat16(),
            "x": draw((tokens, n), torch.bfloat16, workload.distribution, generator),
        }

    def oracle(self, grad: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        return (grad.double().t() @ x.double(),)

    def reference(self, grad: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (torch.matmul(grad.t(), x),)

    def flops(self, dims: Dims) -> int:
        """A product and an addition for each multiply-add."""
        return 2 * self.elements(dims)


PROBLEM = MatmulTn()
