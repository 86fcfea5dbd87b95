"""Euclidean distances between all points of two clouds."""

from __future__ import annotations

import torch

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


class PairwiseDistance(Problem):
    """`out[b, i, j] = |p[b, i] - q[b, j]|`."""

    name = "pairwise_distance"
    summary = "Euclidean distance of each point of p to each point of q, by batch"
    category = "Math"
    level = 3
    tags = ("point-cloud", "protein", "memory-bound")
    source = "set abstraction of PointNet++ and DGCNN on ModelNet40, residue distances of AlphaFold"

    args = (
        TensorArg("p", torch.float32, shape="batch, n, dim"),
        TensorArg("q", torch.float32, shape="batch, m, dim"),
    )
    outputs = (Output("out", torch.float32, shape="batch, n, m"),)
    axes = (
        Axis("batch", 1, 4096),
        Axis("n", 1, 1 << 15),
        Axis("m", 1, 1 << 15),
        Axis("dim", 1, 16),
    )
    train = points(
        "batch n m dim",
        full=[
            (32, 1024, 1024, 3),
            (16, 512, 4096, 3),
            (64, 1024, 512, 6),
            (1, 4096, 4096, 3),
            (128, 384, 384, 3),
        ],
        sim=[(2, 256, 256, 3), (1, 128, 1024, 3), (3, 256, 128, 6), (4, 160, 160, 3)],
    )
    production = points(
        "batch n m dim",
        full=[(32, 2048, 1024, 3), (8, 2048, 2048, 3), (16, 128, 8192, 4)],
        sim=[(1, 512, 256, 3), (2, 250, 250, 3), (4, 32, 512, 4)],
    )
    adversarial = ({"batch": 2, "n": 1, "m": 5, "dim": 1},)
    distributions = ("normal", "uniform", "structured", "large")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws p float32[batch, n, dim] and q float32[batch, m, dim].

        An eighth of the points q are points p, at a distance of zero.
        """
        batch, n, m, dim = (workload.dims[a] for a in ("batch", "n", "m", "dim"))
        p = draw((batch, n, dim), torch.float32, workload.distribution, generator)
        q = draw((batch, m, dim), torch.float32, workload.distribution, generator)
        at = torch.randint(n, (batch, m, 1), generator=generator).expand(-1, -1, dim)
        same = torch.rand((batch, m, 1), generator=generator) < 1 / 8
        return {"p": p, "q": torch.where(same, p.gather(1, at), q)}

    def oracle(self, p: torch.Tensor, q: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """By differences, which do not cancel."""
        difference = p.double()[:, :, None] - q.double()[:, None]
        return (difference.square().sum(-1).sqrt(),)

    def reference(self, p: torch.Tensor, q: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One PyTorch call, told not to use a matrix product."""
        return (torch.cdist(p, q, compute_mode="donot_use_mm_for_euclid_dist"),)

    def flops(self, dims: Dims) -> int:
        """Subtract, multiply and add for each coordinate, and a root."""
        return 3 * self.elements(dims) + self.elements(dims) // dims["dim"]


PROBLEM = PairwiseDistance()
