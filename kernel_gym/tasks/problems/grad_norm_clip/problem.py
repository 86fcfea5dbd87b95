"""Clipping of a gradient by its norm."""

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


class GradNormClip(Problem):
    """`norm = sqrt(sum of grad^2)`, `out = grad * min(1, limit / (norm + 1e-6))`.

    The norm is over all elements of the flat gradient. `limit` is positive. Computed in float32,
    and the sum of squares does not overflow.
    """

    name = "grad_norm_clip"
    summary = (
        "L2 norm of a flat gradient, and the gradient scaled so that its norm is at most limit"
    )
    category = "Optimizer"
    level = 3
    tags = ("decoder-llm", "vision", "training", "memory-bound", "reduction")
    source = "layers of GPT-2, Llama-2-7B, ViT-L/16 and Qwen2.5-0.5B; limits of 0.1 to 5"

    args = (
        TensorArg("grad", torch.float32, shape="rows * cols"),
        ScalarArg("limit", float, values=(1.0, 100.0, 1000.0)),
    )
    outputs = (
        Output("out", torch.float32, shape="rows * cols"),
        Output("norm", torch.float32, shape="1"),
    )
    axes = (Axis("rows", 1, 1 << 18), Axis("cols", 1, 1 << 14))
    train = points(
        "rows cols",
        full=[(4096, 4096), (50257, 768), (11008, 4096), (1024, 4096), (4864, 896)],
        sim=[(128, 1024), (200, 768), (30, 4096), (64, 4096)],
    )
    production = points(
        "rows cols",
        full=[(32000, 4096), (3072, 768), (5120, 5120), (18944, 3584), (1152, 4608)],
        sim=[(100, 896), (30, 768), (40, 5120), (18, 3584), (50, 1152)],
    )
    adversarial = ({"rows": 1, "cols": 1}, {"rows": 3, "cols": 131})
    distributions = ("normal", "tiny", "uniform", "heavy_tail")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws a gradient by the distribution, and a limit below or above its norm."""
        count = self.elements(workload.dims)
        return {
            "grad": draw((count,), torch.float32, workload.distribution, generator),
            **self.scalars(workload),
        }

    def oracle(self, grad: torch.Tensor, limit: float) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        norm = grad.double().square().sum().sqrt()
        return grad.double() * (limit / (norm + 1e-6)).clamp(max=1.0), norm[None]

    def reference(self, grad: torch.Tensor, limit: float) -> tuple[torch.Tensor, ...]:
        """As clip_grad_norm_ computes it, with a sum in blocks, which is exact enough on CPUs."""
        norm = grad.square().sum().sqrt()
        return grad * torch.clamp(limit / (norm + 1e-6), max=1.0), norm[None]

    def bytes(self, dims: Dims) -> int:
        """Reads the gradient once, if it stays on the chip, and writes it."""
        return 8 * self.elements(dims) + 4

    def flops(self, dims: Dims) -> int:
        """A square, an addition and a product for each element."""
        return 3 * self.elements(dims)


PROBLEM = GradNormClip()
