"""One step of row-wise Adagrad on an embedding table."""

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


class RowwiseAdagradStep(Problem):
    """`state[r] += mean(grad[r]^2)`, then `table[r] -= lr * grad[r] / (sqrt(state[r]) + eps)`."""

    name = "rowwise_adagrad_step"
    summary = "one row-wise Adagrad step; returns the new table and state"
    category = "Optimizer"
    level = 3
    tags = ("recommender", "training", "memory-bound", "reduction")
    source = "embedding tables of DLRM on Criteo (MLPerf) and of two-tower retrieval, after FBGEMM"

    args = (
        TensorArg("table", torch.float16, shape="rows, dim"),
        TensorArg("grad", torch.float16, shape="rows, dim"),
        TensorArg("state", torch.float32, shape="rows"),
        ScalarArg("lr", float, values=(0.1, 0.01, 0.05)),
        ScalarArg("eps", float, values=(1e-4, 1e-2, 1e-6)),
    )
    outputs = (
        Output("new_table", torch.float16, shape="rows, dim"),
        Output("new_state", torch.float32, shape="rows"),
    )
    axes = (Axis("rows", 1, 1 << 24), Axis("dim", 1, 1 << 13))
    train = points(
        "rows dim",
        full=[(400000, 128), (1000000, 64), (200000, 256), (65536, 512), (2000000, 16)],
        sim=[(512, 128), (1000, 64), (250, 256), (128, 512)],
    )
    production = points(
        "rows dim",
        full=[(300000, 96), (100000, 384), (1500000, 32)],
        sim=[(600, 96), (160, 384), (2000, 32)],
    )
    adversarial = ({"rows": 40, "dim": 1},)
    distributions = ("normal", "tiny", "offset", "uniform")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws gradients by the distribution, and states that such gradients leave."""
        rows, dim = workload.dims["rows"], workload.dims["dim"]
        past = draw((rows, 2), torch.float32, workload.distribution, generator)
        return {
            "table": torch.randn((rows, dim), generator=generator).half(),
            "grad": draw((rows, dim), torch.float16, workload.distribution, generator),
            "state": past.square().sum(1),
            **self.scalars(workload),
        }

    def oracle(
        self, table: torch.Tensor, grad: torch.Tensor, state: torch.Tensor, lr: float, eps: float
    ) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        g = grad.double()
        total = state.double() + g.square().mean(1)
        return table.double() - lr * g / (total.sqrt() + eps)[:, None], total

    def reference(
        self, table: torch.Tensor, grad: torch.Tensor, state: torch.Tensor, lr: float, eps: float
    ) -> tuple[torch.Tensor, ...]:
        """Operator by operator in float32, the table rounded once."""
        wide = grad.float()
        total = state + torch.mean(wide * wide, dim=1)
        step = lr / (torch.sqrt(total) + eps)
        return (table.float() - step[:, None] * wide).half(), total

    def flops(self, dims: Dims) -> int:
        """Two products and two additions a parameter."""
        return 4 * self.elements(dims)


PROBLEM = RowwiseAdagradStep()
