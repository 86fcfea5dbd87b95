"""Matrix product with bias and GELU, the first half of a transformer's MLP."""

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


class MatmulBiasGelu(Problem):
    """`out = gelu(x @ weight + bias)`, GELU by its tanh form."""

    name = "matmul_bias_gelu"
    summary = "gelu_tanh(x @ weight + bias) in float16, accumulated in float32"
    category = "MatMul"
    level = 3
    tags = ("decoder-llm", "vision", "diffusion", "compute-bound")
    source = "first MLP layer of GPT-2, GPT-2-medium, ViT-B/16 and DiT-XL/2"

    args = (
        TensorArg("x", torch.float16, shape="m, k"),
        TensorArg("weight", torch.float16, shape="k, n"),
        TensorArg("bias", torch.float16, shape="n"),
    )
    outputs = (Output("out", torch.float16, shape="m, n"),)
    axes = (Axis("m", 1, 1 << 16), Axis("n", 1, 1 << 16), Axis("k", 1, 1 << 15))
    train = points(
        "m n k",
        full=[(8192, 3072, 768), (4096, 4096, 1024), (6304, 3072, 768), (4096, 4608, 1152)],
        sim=[(256, 384, 192), (128, 512, 256), (197, 384, 192), (192, 576, 144)],
    )
    production = points(
        "m n k",
        full=[(4096, 5120, 1280), (2048, 8192, 2048), (1500, 5120, 1280)],
        sim=[(128, 640, 160), (64, 512, 384), (150, 320, 160)],
    )
    adversarial = ({"m": 3, "n": 5, "k": 1},)
    distributions = ("normal", "uniform", "negative", "structured")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x [m, k], weight [k, n] over sqrt(k) and bias [n], float16.

        Under "negative" the bias is around -3, where the forms of GELU differ, and x is small.
        """
        m, n, k = (workload.dims[axis] for axis in "mnk")
        negative = workload.distribution == "negative"
        kind = "uniform" if negative else workload.distribution
        x = draw((m, k), torch.float16, kind, generator)
        weight = draw((k, n), torch.float32, kind, generator) * k**-0.5
        bias = draw((n,), torch.float16, "negative" if negative else "normal", generator)
        return {"x": x, "weight": weight.half(), "bias": bias}

    def oracle(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        h = x.double() @ weight.double() + bias.double()
        return (F.gelu(h, approximate="tanh"),)

    def reference(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """A product with bias, then the activation."""
        return (F.gelu(torch.addmm(bias, x, weight), approximate="tanh"),)

    def flops(self, dims: Dims) -> int:
        """The product, and the bias and about 8 for GELU for each output."""
        return 2 * self.elements(dims) + 9 * dims["m"] * dims["n"]


PROBLEM = MatmulBiasGelu()
