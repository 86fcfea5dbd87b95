"""One step of Adafactor with factored second moments."""

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


class AdafactorStep(Problem):
    """Updates a float32 matrix by a gradient whose squares are kept as row and column means.

    `row = decay * row + (1 - decay) * mean over columns of (grad^2 + eps)`, `col` alike over rows;
    `u = grad / sqrt(row[i] / mean(row) * col[j])`; `new_param = param - lr * u / max(1, rms(u) /
    limit)`, with the root of the mean of squares over the whole matrix. Returns the new parameters
    and both means.
    """

    name = "adafactor_step"
    summary = "Adafactor update: means of squares by row and column, clipped by the update's RMS"
    category = "Optimizer"
    level = 4
    tags = ("decoder-llm", "training", "memory-bound", "reduction")
    source = "matrices of T5-base (768 x 3072), T5-3B (1024 x 16384), PaLM-style 4096 x 4096"
    domain = "All inputs are finite; row, col and eps are positive, as steps leave them."

    args = (
        TensorArg("param", torch.float32, shape="rows, cols"),
        TensorArg("grad", torch.float32, shape="rows, cols"),
        TensorArg("row", torch.float32, shape="rows"),
        TensorArg("col", torch.float32, shape="cols"),
        ScalarArg("lr", float, values=(0.01, 0.001, 0.05)),
        ScalarArg("decay", float, values=(0.99, 0.8, 0.95)),
        ScalarArg("eps", float, values=(1e-8, 1e-3, 1e-6)),
        ScalarArg("limit", float, values=(1.0, 0.5, 2.0)),
    )
    outputs = (
        Output("new_param", torch.float32, shape="rows, cols"),
        Output("new_row", torch.float32, shape="rows"),
        Output("new_col", torch.float32, shape="cols"),
    )
    axes = (Axis("rows", 1, 1 << 17), Axis("cols", 1, 1 << 15))
    train = points(
        "rows cols",
        full=[(3072, 768), (4096, 4096), (1024, 16384), (32128, 768)],
        sim=[(192, 256), (128, 512), (32, 2048), (500, 96)],
    )
    production = points(
        "rows cols",
        full=[(768, 768), (2048, 5120), (16384, 1024), (4096, 11008)],
        sim=[(96, 96), (64, 640), (1024, 64), (128, 344)],
    )
    adversarial = ({"rows": 1, "cols": 5}, {"rows": 33, "cols": 3})
    distributions = ("normal", "tiny", "heavy_tail", "uniform")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws parameters, gradients by the distribution, and means that such gradients leave."""
        rows, cols = workload.dims["rows"], workload.dims["cols"]
        size = {"tiny": 1e-6, "heavy_tail": 15.0}.get(workload.distribution, 1.0)
        return {
            "param": torch.randn((rows, cols), generator=generator),
            "grad": draw((rows, cols), torch.float32, workload.distribution, generator),
            "row": size * (0.5 + torch.rand(rows, generator=generator)),
            "col": size * (0.5 + torch.rand(cols, generator=generator)),
            **self.scalars(workload),
        }

    def oracle(
        self,
        param: torch.Tensor,
        grad: torch.Tensor,
        row: torch.Tensor,
        col: torch.Tensor,
        lr: float,
        decay: float,
        eps: float,
        limit: float,
    ) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        g = grad.double()
        square = g.square() + eps
        r = decay * row.double() + (1 - decay) * square.mean(1)
        c = decay * col.double() + (1 - decay) * square.mean(0)
        u = g / (r[:, None] / r.mean() * c).sqrt()
        step = lr / (u.square().mean().sqrt() / limit).clamp(min=1)
        return param.double() - step * u, r, c

    def reference(
        self,
        param: torch.Tensor,
        grad: torch.Tensor,
        row: torch.Tensor,
        col: torch.Tensor,
        lr: float,
        decay: float,
        eps: float,
        limit: float,
    ) -> tuple[torch.Tensor, ...]:
        """Operator by operator, as Hugging Face writes it."""
        square = grad * grad + eps
        new_row = decay * row + (1 - decay) * square.mean(dim=1)
        new_col = decay * col + (1 - decay) * square.mean(dim=0)
        u = grad * torch.rsqrt(new_row / new_row.mean())[:, None] * torch.rsqrt(new_col)
        rms = (u * u).mean().sqrt()
        return param - u * (lr / torch.clamp(rms / limit, min=1.0)), new_row, new_col

    def flops(self, dims: Dims) -> int:
        """Two operations for each mean, three for the update, two for its size, two to apply it."""
        return 11 * self.elements(dims)


PROBLEM = AdafactorStep()
