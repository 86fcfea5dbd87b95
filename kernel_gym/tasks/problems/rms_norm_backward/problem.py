"""Gradients of RMS normalisation."""

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
from kernel_gym.tasks.yardsticks import column_sums, farthest


class RmsNormBackward(Problem):
    """Gradients of `y = x * r * weight`, `r = 1 / sqrt(mean(x^2) + eps)` by row, given `grad = dy`.

    With `n = x * r` and `g = grad * weight`: `dx = r * (g - n * mean(g * n))`, and `dweight[c] =
    sum over rows of grad[:, c] * n[:, c]`.
    """

    name = "rms_norm_backward"
    summary = "gradients of x and weight of RMS normalisation"
    category = "Normalization"
    level = 3
    tags = ("decoder-llm", "moe", "training", "memory-bound", "backward")
    source = "hidden sizes of Llama-3-8B, Llama-3.2-1B, Qwen2.5-7B, Mixtral-8x7B and DeepSeek-V3"

    args = (
        TensorArg("grad", torch.float16, shape="rows, cols"),
        TensorArg("x", torch.float16, shape="rows, cols"),
        TensorArg("weight", torch.float16, shape="cols"),
        ScalarArg("eps", float, values=(1e-6, 1e-5, 1e-3)),
    )
    outputs = (
        Output("dx", torch.float16, shape="rows, cols"),
        Output("dweight", torch.float32, shape="cols"),
    )
    axes = (Axis("rows", 1, 1 << 18), Axis("cols", 16, 1 << 15))
    train = points(
        "rows cols",
        full=[(8192, 4096), (16384, 2048), (8192, 3584), (4096, 7168), (2048, 8192)],
        sim=[(64, 4096), (192, 1024), (96, 2048), (48, 3584)],
    )
    production = points(
        "rows cols",
        full=[(4096, 5120), (8192, 5376), (2048, 18432), (16384, 1536), (65536, 128)],
        sim=[(40, 5120), (48, 5376), (16, 18432), (128, 1536), (1024, 128)],
    )
    adversarial = ({"rows": 3, "cols": 17}, {"rows": 1, "cols": 130})
    distributions = ("normal", "tiny", "heavy_tail", "sparse")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws grad and x by the distribution, weights around one, and eps from three values."""
        shape = (workload.dims["rows"], workload.dims["cols"])
        kind = workload.distribution
        return {
            "grad": draw(shape, torch.float16, kind, generator),
            "x": draw(shape, torch.float16, kind, generator),
            "weight": (1 + 0.3 * torch.randn(shape[1], generator=generator)).half(),
            **self.scalars(workload),
        }

    def oracle(
        self, grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float
    ) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        g, wide = grad.double() * weight.double(), x.double()
        r = torch.rsqrt(wide.square().mean(1, keepdim=True) + eps)
        n = wide * r
        dx = r * (g - n * (g * n).mean(1, keepdim=True))
        return dx, (grad.double() * n).sum(0)

    def reference(
        self, grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float
    ) -> tuple[torch.Tensor, ...]:
        """Operator by operator in float32, each output rounded once."""
        dy, wide = grad.float(), x.float()
        r = torch.rsqrt(wide.square().mean(1, keepdim=True) + eps)
        n = wide * r
        g = dy * weight.float()
        dx = r * (g - n * (g * n).mean(1, keepdim=True))
        return dx.half(), (dy * n).sum(0)

    def yardstick(
        self, grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float
    ) -> tuple[torch.Tensor, ...]:
        """The reference, and other orders of the sums over rows."""
        dx, dweight = self.reference(grad, x, weight, eps)
        wide = x.float()
        r = torch.rsqrt(wide.square().mean(1, keepdim=True) + eps)
        sums = column_sums(grad.float() * wide * r)
        oracle = self.oracle(grad, x, weight, eps)
        return dx, farthest(oracle[1], (dweight, *sums))

    def flops(self, dims: Dims) -> int:
        """Eleven operations for each element: two means, one sum of a column, and dx."""
        return 11 * self.elements(dims)


PROBLEM = RmsNormBackward()
