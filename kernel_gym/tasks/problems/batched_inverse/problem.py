"""Inverses of a batch of small matrices."""

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


class BatchedInverse(Problem):
    """`out[i] @ a[i]` is the identity. The matrices need pivoting."""

    name = "batched_inverse"
    summary = "inverse of each of a batch of small float32 matrices, with pivoting"
    category = "LinearAlgebra"
    level = 4
    tags = ("vision", "point-cloud", "protein", "sequential")
    source = "camera poses of NeRF and VGGT (4 x 4), rigid frames (3 x 3), 16-channel beamformers"

    args = (TensorArg("a", torch.float32, shape="batch, n, n"),)
    outputs = (Output("out", torch.float32, check=Check.CUSTOM, shape="batch, n, n"),)
    axes = (Axis("batch", 1, 1 << 21), Axis("n", 1, 16))
    train = points(
        "batch n",
        full=[(524288, 4), (65536, 16), (262144, 8), (1048576, 3)],
        sim=[(768, 4), (96, 16), (256, 8), (1024, 3)],
    )
    production = points(
        "batch n",
        full=[(131072, 12), (262144, 6), (100000, 10)],
        sim=[(128, 12), (400, 6), (150, 10)],
    )
    exchangeable = False
    adversarial = ({"batch": 2, "n": 1}, {"batch": 3, "n": 5})
    distributions = ("normal", "uniform", "sparse", "structured")

    def elements(self, dims: Dims) -> int:
        """Multiply-adds of the dense cube."""
        return dims["batch"] * dims["n"] ** 3

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws a float32: a dominant diagonal of either sign, its rows in random order."""
        batch, n = workload.dims["batch"], workload.dims["n"]
        a = draw((batch, n, n), torch.float32, workload.distribution, generator) / (2 * n)
        size = 1 + torch.rand(batch, n, generator=generator)
        sign = 1 - 2 * torch.randint(0, 2, (batch, n), generator=generator)
        a.diagonal(dim1=1, dim2=2).copy_(size * sign)
        order = torch.rand(batch, n, generator=generator).argsort(1)
        return {"a": a.gather(1, order[:, :, None].expand(-1, -1, n)).contiguous()}

    def oracle(self, a: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """By the library, in fp64."""
        return (torch.linalg.inv(a.double()),)

    def reference(self, a: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (torch.linalg.inv_ex(a).inverse,)

    def mismatches(
        self, name: str, found: torch.Tensor, inputs: Mapping[str, Value], expected: torch.Tensor
    ) -> torch.Tensor:
        """By the distance to the inverse: at most 4 (n + 3) u times the largest of |X| |a| |X|.

        (Higham, "Accuracy and Stability of Numerical Algorithms", sections 14.3 and 14.4: 4 n u
        where divisions round correctly; fast ones of GPUs err by 4 u instead of one. By the largest
        element of each matrix, since Gauss-Jordan elimination is not stable by element.)
        """
        a = inputs["a"]
        if not isinstance(a, torch.Tensor):
            return super().mismatches(name, found, inputs, expected)
        size, unit = expected.abs(), torch.finfo(torch.float32).eps / 2
        largest = (size @ a.double().abs() @ size).amax((1, 2), keepdim=True)
        allowed = 4 * (a.shape[1] + 3) * unit * largest
        return ~((found.double() - expected).abs() <= allowed)

    def flops(self, dims: Dims) -> int:
        """A product and a difference for each multiply-add of the cube."""
        return 2 * self.elements(dims)


PROBLEM = BatchedInverse()
