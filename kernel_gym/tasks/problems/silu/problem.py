"""SiLU, also called Swish."""

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


class Silu(Problem):
    """`x / (1 + exp(-x))`, element by element."""

    name = "silu"
    summary = "SiLU: x / (1 + exp(-x))"
    category = "Activation"
    level = 1
    tags = ("diffusion", "vision", "memory-bound")
    source = (
        "residual blocks of the Stable Diffusion 1.5 U-Net and its time embedding, EfficientNet-B0"
    )

    args = (TensorArg("x", torch.float16, shape="rows, cols"),)
    outputs = (Output("out", torch.float16, shape="rows, cols"),)
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 1, 1 << 17))
    train = points(
        "rows cols",
        full=[(5120, 4096), (10240, 1024), (20480, 256), (4096, 12544), (512, 1280)],
        sim=[(64, 4096), (256, 1024), (500, 256), (12, 12544)],
    )
    production = points(
        "rows cols",
        full=[(7680, 4096), (8192, 3136), (2560, 9216)],
        sim=[(96, 3136), (40, 4096), (400, 196)],
    )
    adversarial = ({"rows": 3, "cols": 1},)
    distributions = ("normal", "large", "tiny", "heavy_tail")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x float16[rows, cols]."""
        shape = (workload.dims["rows"], workload.dims["cols"])
        return {"x": draw(shape, torch.float16, workload.distribution, generator)}

    def oracle(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """By the sigmoid."""
        return (x.double() * torch.sigmoid(x.double()),)

    def reference(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (F.silu(x),)

    def flops(self, dims: Dims) -> int:
        """Negate, exponential, add and divide for each element."""
        return 4 * self.elements(dims)


PROBLEM = Silu()
