"""Cholesky factors of a batch of small matrices."""

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


class BatchedCholesky(Problem):
    """`out[i]` lower triangular with positive diagonal, `out[i] @ out[i]^T = a[i]`."""

    name = "batched_cholesky"
    summary = "lower Cholesky factor of each of a batch of small float32 matrices"
    category = "LinearAlgebra"
    level = 4
    tags = ("vision", "point-cloud", "audio", "sequential")
    source = "8 x 8 states of SORT trackers, 16-channel beamformers, 32-wide Gaussian heads, SOAP"

    args = (TensorArg("a", torch.float32, shape="batch, n, n"),)
    outputs = (Output("out", torch.float32, check=Check.CUSTOM, shape="batch, n, n"),)
    axes = (Axis("batch", 1, 1 << 20), Axis("n", 1, 32))
    train = points(
        "batch n",
        full=[(16384, 32), (65536, 16), (262144, 8), (32768, 24)],
        sim=[(64, 32), (192, 16), (512, 8), (96, 24)],
    )
    production = points(
        "batch n",
        full=[(524288, 4), (131072, 12), (20000, 30)],
        sim=[(1024, 4), (256, 12), (60, 30)],
    )
    exchangeable = False
    adversarial = ({"batch": 2, "n": 1}, {"batch": 3, "n": 5})
    distributions = ("normal", "uniform", "sparse", "tiny")

    def elements(self, dims: Dims) -> int:
        """Multiply-adds of the dense cube."""
        return dims["batch"] * dims["n"] ** 3

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws a float32, symmetric and positive definite, of several sizes."""
        batch, n = workload.dims["batch"], workload.dims["n"]
        root = draw((batch, n, n), torch.float32, workload.distribution, generator).double()
        size = root.square().mean((1, 2), keepdim=True) + 1e-12
        a = root @ root.mT / n + 0.2 * size * torch.eye(n, dtype=torch.float64)
        return {"a": a.float()}

    def oracle(self, a: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """By the library, in fp64."""
        return (torch.linalg.cholesky(a.double()),)

    def reference(self, a: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (torch.linalg.cholesky_ex(a).L,)

    def mismatches(
        self, name: str, found: torch.Tensor, inputs: Mapping[str, Value], expected: torch.Tensor
    ) -> torch.Tensor:
        """By what the factor multiplies to: within 4 (n + 3) u |L| |L|^T of a, zeros exact.

        (Higham, "Accuracy and Stability of Numerical Algorithms", theorem 10.3: (n + 1) u where
        operations round correctly. A fast division of a GPU errs by 4 u and a fast root by 2 u, and
        a quotient by a root is on both sides of the product: 12 u, however small n is.)
        """
        a = inputs["a"]
        if not isinstance(a, torch.Tensor):
            return super().mismatches(name, found, inputs, expected)
        factor, n = found.double(), a.shape[1]
        unit = torch.finfo(torch.float32).eps / 2
        allowed = 4 * (n + 3) * unit * (factor.abs() @ factor.abs().mT)
        wrong = ~((factor @ factor.mT - a.double()).abs() <= allowed)
        shape_wrong = ~(factor.triu(1) == 0) | ~(torch.eye(n).to(a) * factor >= 0)
        return wrong | shape_wrong

    def bytes(self, dims: Dims) -> int:
        """Read a triangle of a, write out with its zeros, 4 bytes an element each."""
        n = dims["n"]
        return 4 * dims["batch"] * (n * (n + 1) // 2 + n * n)

    def flops(self, dims: Dims) -> int:
        """A third of a cube."""
        return self.elements(dims) // 3


PROBLEM = BatchedCholesky()
