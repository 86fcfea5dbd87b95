"""Batched solution of small lower triangular systems."""

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


class TriangularSolve(Problem):
    """`tril(a[i]) @ x[i] = b[i]`; what stands above the diagonal of a is not part of the system."""

    name = "triangular_solve"
    summary = "x with tril(a) @ x = b for a batch of small float32 systems, many right sides"
    category = "LinearAlgebra"
    level = 4
    tags = ("state-space", "decoder-llm", "sequential")
    source = "chunks of 64 in Gated DeltaNet and Qwen3-Next (head 128), Kimi Linear; 32 in DeltaNet"

    args = (
        TensorArg("a", torch.float32, shape="batch, n, n"),
        TensorArg("b", torch.float32, shape="batch, n, rights"),
    )
    outputs = (Output("x", torch.float32, check=Check.CUSTOM, shape="batch, n, rights"),)
    axes = (Axis("batch", 1, 1 << 16), Axis("n", 1, 64), Axis("rights", 1, 1024))
    train = points(
        "batch n rights",
        full=[(4096, 64, 128), (8192, 32, 128), (4096, 64, 256), (8192, 16, 64)],
        sim=[(16, 64, 64), (32, 32, 64), (8, 64, 128), (64, 16, 64)],
    )
    production = points(
        "batch n rights",
        full=[(2048, 64, 192), (16384, 32, 64), (1024, 48, 512)],
        sim=[(8, 64, 96), (48, 32, 32), (8, 48, 96)],
    )
    exchangeable = False
    adversarial = ({"batch": 2, "n": 1, "rights": 3}, {"batch": 1, "n": 7, "rights": 1})
    distributions = ("normal", "uniform", "sparse", "structured")

    def elements(self, dims: Dims) -> int:
        """Multiply-adds of the dense square."""
        return dims["batch"] * dims["n"] ** 2 * dims["rights"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws a float32 with a diagonal of size 1 to 2 and either sign, and b float32."""
        batch, n, rights = (workload.dims[axis.name] for axis in self.axes)
        a = draw((batch, n, n), torch.float32, workload.distribution, generator) * n**-0.5
        size = 1 + torch.rand(batch, n, generator=generator)
        sign = 1 - 2 * torch.randint(0, 2, (batch, n), generator=generator)
        a.diagonal(dim1=1, dim2=2).copy_(size * sign)
        return {"a": a, "b": draw((batch, n, rights), torch.float32, "normal", generator)}

    def oracle(self, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """By the library, in fp64."""
        return (torch.linalg.solve_triangular(a.double(), b.double(), upper=False),)

    def reference(self, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (torch.linalg.solve_triangular(a, b, upper=False),)

    def mismatches(
        self, name: str, found: torch.Tensor, inputs: Mapping[str, Value], expected: torch.Tensor
    ) -> torch.Tensor:
        """By the residual: substitution in any order leaves at most (n + 3) u |a| |x| in a row.

        Twice that is let pass. (Higham, "Accuracy and Stability of Numerical Algorithms", 8.1: n u
        where the division rounds correctly; fast divisions of GPUs err by 4 u instead of one.)
        """
        a, b = inputs["a"], inputs["b"]
        if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
            return super().mismatches(name, found, inputs, expected)
        lower, x = a.double().tril(), found.double()
        unit = torch.finfo(torch.float32).eps / 2
        allowed = 2 * (a.shape[1] + 3) * unit * (lower.abs() @ x.abs())
        return ~((lower @ x - b.double()).abs() <= allowed)

    def bytes(self, dims: Dims) -> int:
        """Read the triangle of a and b, write x, 4 bytes an element each."""
        batch, n, rights = (dims[axis.name] for axis in self.axes)
        return 4 * batch * (n * (n + 1) // 2 + 2 * n * rights)

    def flops(self, dims: Dims) -> int:
        """A product and a difference below the diagonal, a division on it, for each right side."""
        return self.elements(dims)


PROBLEM = TriangularSolve()
