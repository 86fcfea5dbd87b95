"""Softplus: the smallest problem that is complete."""

from __future__ import annotations

import torch

from kernel_gym.tasks import (
    Axis,
    Dims,
    Output,
    Problem,
    TensorArg,
    Value,
    Workload,
    draw,
    points,
)


class Softplus(Problem):
    """`log(1 + exp(x))`, element by element."""

    name = "softplus"
    summary = "Softplus: log(1 + exp(x))"
    category = "Activation"
    level = 1
    tags = ("memory-bound",)
    source = "the step sizes of Mamba, arXiv:2312.00752"

    args = (TensorArg("x", torch.bfloat16, shape="rows, cols"),)
    outputs = (Output("out", torch.bfloat16, shape="rows, cols"),)
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 1, 1 << 17))
    # `full` holds sizes of real models, for a GPU; `sim` holds small twins, for the simulator.
    train = points(
        "rows cols",
        full=[(8192, 1536), (4096, 5120), (16384, 2048)],
        sim=[(128, 1536), (48, 5120), (96, 2048)],
    )
    production = points(
        "rows cols",
        full=[(8192, 3072), (2048, 8192)],
        sim=[(64, 3072), (32, 8192)],
    )
    adversarial = ({"rows": 3, "cols": 1},)
    distributions = ("normal", "large", "tiny", "heavy_tail")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x bfloat16[rows, cols]."""
        shape = (workload.dims["rows"], workload.dims["cols"])
        return {"x": draw(shape, torch.bfloat16, workload.distribution, generator)}

    def oracle(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Computes in fp64, in a form that neither overflows nor cancels."""
        y = x.double()
        return (torch.clamp(y, min=0) + torch.log1p(torch.exp(-y.abs())),)

    def reference(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Computes with plain PyTorch in the task's precision. Its error sets the tolerance."""
        return (torch.nn.functional.softplus(x.float()).to(torch.bfloat16),)

    def flops(self, dims: Dims) -> int:
        """Counts four operations for each element."""
        return 4 * self.elements(dims)


PROBLEM = Softplus()
