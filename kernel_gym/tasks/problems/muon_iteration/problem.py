"""One Newton-Schulz iteration of the Muon optimizer."""

from __future__ import annotations

from dataclasses import replace

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
from kernel_gym.tasks.yardsticks import farthest, products_in_order


class MuonIteration(Problem):
    """`out = a x + b (x x^T) x + c (x x^T)^2 x` for a batch of float32 matrices.

    `rows` is at most `cols`. The singular values of x are at most about one. The
    coefficients belong together: (3.4445, -4.775, 2.0315), (1.875, -1.25, 0.375) or (2, -1.5, 0.5).
    Everything is computed in float32, products as well (no TF32).
    """

    name = "muon_iteration"
    summary = "a x + (b g + c g^2) x with g = x x^T for each matrix, in full float32"
    category = "Optimizer"
    level = 4
    tags = ("decoder-llm", "training", "compute-bound")
    source = (
        "hidden matrices of GPT-2, Llama-3.2-1B and Qwen2.5-0.5B; coefficients of Keller Jordan"
    )

    args = (
        TensorArg("x", torch.float32, shape="batch, rows, cols"),
        ScalarArg("a", float, values=(3.4445, 1.875, 2.0), ranged=False),
        ScalarArg("b", float, values=(-4.775, -1.25, -1.5), ranged=False),
        ScalarArg("c", float, values=(2.0315, 0.375, 0.5), ranged=False),
    )
    outputs = (Output("out", torch.float32, shape="batch, rows, cols"),)
    axes = (Axis("batch", 1, 256), Axis("rows", 1, 8192), Axis("cols", 1, 8192))
    train = points(
        "batch rows cols",
        full=[(12, 768, 3072), (4, 2048, 2048), (8, 896, 4864), (1, 2048, 8192)],
        sim=[(2, 96, 384), (1, 128, 128), (2, 112, 304), (1, 128, 512)],
    )
    production = points(
        "batch rows cols",
        full=[(24, 768, 768), (2, 1600, 6400), (48, 512, 512), (1, 3072, 8192)],
        sim=[(3, 96, 96), (1, 100, 400), (6, 64, 64), (1, 192, 512)],
    )
    adversarial = ({"batch": 1, "rows": 1, "cols": 3}, {"batch": 2, "rows": 17, "cols": 35})
    distributions = ("normal", "uniform", "sparse", "structured")

    def legal(self, dims: Dims) -> bool:
        """On its axes, with no more rows than columns."""
        return super().legal(dims) and dims["rows"] <= dims["cols"]

    def scalars(self, workload: Workload) -> dict[str, int | float]:
        """The three coefficients that belong to the first one, which may be rounded to float32."""
        first = self.declared[0]
        stated = workload.scalars.get(first.name, first.values[0])
        index = min(range(len(first.values)), key=lambda i: abs(first.values[i] - stated))
        chosen = {arg.name: arg.values[index] for arg in self.declared}
        return super().scalars(replace(workload, scalars=chosen))

    def elements(self, dims: Dims) -> int:
        """Multiply-adds of the three products."""
        return dims["batch"] * dims["rows"] ** 2 * (2 * dims["cols"] + dims["rows"])

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x by the distribution, with a Frobenius norm of at most one, and coefficients."""
        shape = tuple(workload.dims[axis.name] for axis in self.axes)
        x = draw(shape, torch.float32, workload.distribution, generator)
        norm = torch.linalg.matrix_norm(x.double(), keepdim=True).clamp(min=1e-6)
        return {"x": (x / norm).float(), **self.scalars(workload)}

    def oracle(self, x: torch.Tensor, a: float, b: float, c: float) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        wide = x.double()
        gram = wide @ wide.mT
        return (a * wide + (b * gram + c * gram @ gram) @ wide,)

    def reference(self, x: torch.Tensor, a: float, b: float, c: float) -> tuple[torch.Tensor, ...]:
        """Three fused products, as Muon's code writes them."""
        gram = torch.bmm(x, x.mT)
        poly = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        return (torch.baddbmm(x, poly, x, beta=a),)

    def yardstick(self, x: torch.Tensor, a: float, b: float, c: float) -> tuple[torch.Tensor, ...]:
        """The same with sums term by term. All of a matrix of one row has one error of its sum."""
        rows = x.shape[0] * x.shape[1]
        answers = []
        for gram in products_in_order(x, x.mT, rows):
            poly = b * gram + c * products_in_order(gram, gram)[0]
            answers.append(a * x + products_in_order(poly, x)[0])
        return (farthest(self.oracle(x, a, b, c)[0], answers),)

    def flops(self, dims: Dims) -> int:
        """A product and an addition for each multiply-add; half of the symmetric products."""
        rows, cols = dims["rows"], dims["cols"]
        triangle = rows * (rows + 1) // 2
        return 2 * dims["batch"] * (triangle * (cols + rows) + rows * rows * cols)


PROBLEM = MuonIteration()
