"""Matrix product in single precision."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from kernel_gym.tasks.distributions import draw
from kernel_gym.tasks.problem import (
    Axis,
    Check,
    Dims,
    Output,
    Problem,
    TensorArg,
    Value,
    points,
)
from kernel_gym.tasks.workload import Workload


class MatmulFp32(Problem):
    """`out = a @ b`, every product and sum in float32: no TF32, no half precision."""

    name = "matmul_fp32"
    summary = "matrix product of float32 matrices with full float32 products and sums"
    category = "MatMul"
    level = 3
    tags = ("recommender", "vision", "point-cloud", "compute-bound")
    source = "MLP layers of DLRM (MLPerf), PointNet++ (SSG) and ResNet-50's classifier"

    args = (
        TensorArg("a", torch.float32, shape="m, k"),
        TensorArg("b", torch.float32, shape="k, n"),
    )
    outputs = (Output("out", torch.float32, check=Check.CUSTOM, shape="m, n"),)
    axes = (Axis("m", 1, 1 << 16), Axis("n", 1, 1 << 15), Axis("k", 1, 1 << 14))
    train = points(
        "m n k",
        full=[(8192, 1024, 1024), (16384, 512, 1024), (32768, 256, 128), (2048, 1000, 2048)],
        sim=[(256, 128, 128), (256, 64, 256), (512, 64, 67), (64, 250, 256)],
    )
    production = points(
        "m n k",
        full=[(8192, 1024, 480), (16384, 256, 512), (4096, 4096, 1024)],
        sim=[(192, 128, 120), (256, 64, 128), (128, 160, 160)],
    )
    adversarial = ({"m": 3, "n": 5, "k": 1},)
    distributions = ("normal", "uniform", "sparse", "structured")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws a float32[m, k] and b float32[k, n], b over sqrt(k) as weights are."""
        m, n, k = (workload.dims[axis] for axis in "mnk")
        a = draw((m, k), torch.float32, workload.distribution, generator)
        b = draw((k, n), torch.float32, workload.distribution, generator)
        return {"a": a, "b": b * k**-0.5}

    def oracle(self, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        return (a.double() @ b.double(),)

    def reference(self, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (a @ b,)

    def mismatches(
        self, name: str, found: torch.Tensor, inputs: Mapping[str, Value], expected: torch.Tensor
    ) -> torch.Tensor:
        """By the rounding of a sum in any order, not that of one library's blocking.

        Each of the k partial sums rounds by a unit u at random: the error grows as sqrt(k) times
        the sum, or as the norms of row and column where the terms cancel. Four times that is let
        pass; TF32 operands err by some hundred times it. (Higham and Mary, "A new approach to
        probabilistic rounding error analysis", SIAM J. Sci. Comput. 2019.)
        """
        a, b = inputs["a"], inputs["b"]
        if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
            return super().mismatches(name, found, inputs, expected)
        norms = a.double().norm(dim=1)[:, None] * b.double().norm(dim=0)[None, :]
        unit = torch.finfo(torch.float32).eps / 2
        allowed = 4 * unit * (a.shape[1] ** 0.5 * expected.abs() + norms)
        return ~((found.double() - expected).abs() <= allowed)

    def flops(self, dims: Dims) -> int:
        """A product and an addition for each multiply-add."""
        return 2 * self.elements(dims)


PROBLEM = MatmulFp32()
