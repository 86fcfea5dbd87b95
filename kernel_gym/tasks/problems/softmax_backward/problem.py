"""Gradient of a row-wise softmax."""

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


class SoftmaxBackward(Problem):
    """`dx = scale * y * (grad - sum over the row of grad * y)`.

    `y` is the output of `softmax(scale * x)` by row, as float16 probabilities. `scale` may have
    either sign.
    """

    name = "softmax_backward"
    summary = "gradient of a scaled softmax over the last axis, from its saved output"
    category = "Reduce-and-scan"
    level = 2
    tags = ("decoder-llm", "vision", "training", "memory-bound", "backward")
    source = "attention of BERT-large, GPT-2 and ViT-L/16 in training; router of DeepSeek-V3"

    args = (
        TensorArg("grad", torch.float16, shape="rows, cols"),
        TensorArg("y", torch.float16, shape="rows, cols"),
        ScalarArg("scale", float, values=(0.125, 1.0, 0.0884, -2.0)),
    )
    outputs = (Output("dx", torch.float16, shape="rows, cols"),)
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 1, 1 << 15))
    train = points(
        "rows cols",
        full=[(12288, 1024), (65536, 512), (37824, 197), (16384, 256), (8192, 4096)],
        sim=[(64, 2048), (192, 512), (256, 197), (24, 4096)],
    )
    production = points(
        "rows cols",
        full=[(16384, 2048), (30000, 1500), (4096, 8192), (65536, 128), (98304, 77)],
        sim=[(48, 2048), (64, 1500), (12, 8192), (512, 128), (900, 77)],
    )
    adversarial = ({"rows": 3, "cols": 2}, {"rows": 5, "cols": 1})
    distributions = ("normal", "offset", "heavy_tail", "structured")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws grad by the distribution, y as a softmax of normal scores, and the scale."""
        shape = (workload.dims["rows"], workload.dims["cols"])
        spread = 1 + 3 * torch.rand((shape[0], 1), generator=generator)
        y = torch.softmax(spread * torch.randn(shape, generator=generator), dim=1).half()
        grad = draw(shape, torch.float16, workload.distribution, generator)
        return {
            "grad": grad,
            "y": y,
            **self.scalars(workload),
        }

    def oracle(self, grad: torch.Tensor, y: torch.Tensor, scale: float) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        dy, p = grad.double(), y.double()
        return (scale * p * (dy - (dy * p).sum(1, keepdim=True)),)

    def reference(
        self, grad: torch.Tensor, y: torch.Tensor, scale: float
    ) -> tuple[torch.Tensor, ...]:
        """PyTorch's gradient of softmax, then the scale."""
        return (torch.ops.aten._softmax_backward_data(grad, y, 1, y.dtype) * scale,)

    def flops(self, dims: Dims) -> int:
        """A product and a sum, then a difference and two products, for each element."""
        return 5 * self.elements(dims)


PROBLEM = SoftmaxBackward()
