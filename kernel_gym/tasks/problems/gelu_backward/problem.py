"""Gradient of the Gaussian error linear unit, in both of its forms."""

from __future__ import annotations

import math

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


class GeluBackward(Problem):
    """`dx = grad * gelu'(x)`, for the form that `tanh` names.

    If `tanh` is 0, `gelu(x) = x * Phi(x)` with the normal distribution function Phi. If it is 1,
    `gelu(x) = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))`.
    """

    name = "gelu_backward"
    summary = "gradient of GELU in float32: the exact form, or the tanh form if `tanh` is 1"
    category = "Activation"
    level = 2
    tags = ("vision", "audio", "training", "memory-bound", "backward")
    source = "feed-forward layers of GPT-2 (tanh), BERT-large, ViT-L/16 and Whisper-large (exact)"

    args = (
        TensorArg("grad", torch.float32, shape="rows, cols"),
        TensorArg("x", torch.float32, shape="rows, cols"),
        ScalarArg("tanh", int, values=(0, 1)),
    )
    outputs = (Output("dx", torch.float32, shape="rows, cols"),)
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 1, 1 << 16))
    train = points(
        "rows cols",
        full=[(8192, 3072), (8192, 4096), (4096, 6400), (12608, 4608), (6000, 5120)],
        sim=[(24, 3072), (16, 4096), (12, 6400), (16, 4608)],
    )
    production = points(
        "rows cols",
        full=[(25216, 4096), (16384, 1536), (4096, 9216), (2048, 36864), (50432, 768)],
        sim=[(20, 4096), (48, 1536), (8, 9216), (2, 36864), (100, 768)],
    )
    adversarial = ({"rows": 2, "cols": 3}, {"rows": 1, "cols": 257})
    distributions = ("normal", "uniform", "large", "heavy_tail")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x by the distribution, normal grad, and the form."""
        shape = (workload.dims["rows"], workload.dims["cols"])
        x = draw(shape, torch.float32, workload.distribution, generator)
        grad = torch.randn(shape, generator=generator)
        return {"grad": grad, "x": x, **self.scalars(workload)}

    def oracle(self, grad: torch.Tensor, x: torch.Tensor, tanh: int) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        wide = x.double()
        if tanh:
            inner = (2 / math.pi) ** 0.5 * (wide + 0.044715 * wide**3)
            slope = (2 / math.pi) ** 0.5 * (1 + 3 * 0.044715 * wide.square())
            t = torch.tanh(inner)
            return (grad.double() * (0.5 * (1 + t) + 0.5 * wide * (1 - t * t) * slope),)
        density = torch.exp(-0.5 * wide.square()) / (2 * math.pi) ** 0.5
        return (grad.double() * (0.5 * torch.erfc(-wide / 2**0.5) + wide * density),)

    def reference(self, grad: torch.Tensor, x: torch.Tensor, tanh: int) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        form = "tanh" if tanh else "none"
        return (torch.ops.aten.gelu_backward(grad, x, approximate=form),)

    def flops(self, dims: Dims) -> int:
        """About twelve operations for each element, a function of libm counted as one."""
        return 12 * self.elements(dims)


PROBLEM = GeluBackward()
