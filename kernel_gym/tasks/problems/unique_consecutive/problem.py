"""Runs of equal neighbours of an array."""

from __future__ import annotations

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


class UniqueConsecutive(Problem):
    """Replaces each run of equal neighbours by one value.

    `value[r]` and `length[r]` are those of run r, 0 for places beyond the last run; `inverse[i]` is
    the run of element i, and `number[0]` the number of runs.
    """

    name = "unique_consecutive"
    summary = "value and length of each run of equal neighbours, and the run of each element"
    category = "Index"
    level = 4
    tags = ("recommender", "graph", "memory-bound", "scan", "compaction")
    source = "deduplicated embedding rows of DLRM, voxel keys of SparseConv and MinkowskiEngine"
    domain = "Any int32 is legal. All elements may be equal, or none."

    args = (TensorArg("x", torch.int32, shape="count"),)
    outputs = (
        Output("value", torch.int32, check=Check.EXACT, shape="count"),
        Output("length", torch.int32, check=Check.EXACT, shape="count"),
        Output("inverse", torch.int32, check=Check.EXACT, shape="count"),
        Output("number", torch.int32, check=Check.EXACT, shape="1"),
    )
    axes = (Axis("count", 1, 1 << 25),)
    train = points(
        "count",
        full=[(1 << 22,), (1000000,), (1 << 24,), (262144,)],
        sim=[(1 << 15,), (20000,), (70000,), (8192,)],
    )
    production = points(
        "count",
        full=[
            *((5000000,), (1 << 20,), (212992,), (12345678,), (1 << 22,), (2000000,)),
            *((10000000,), (600000,), (131072,), (3000000,), (8000000,), (777777,)),
        ],
        sim=[
            *((50000,), (1 << 14,), (10649,), (33333,), (65536,), (20000,)),
            *((40000,), (12345,), (8192,), (30000,), (25000,), (16777,)),
        ],
    )
    adversarial = ({"count": 1}, {"count": 77})
    distributions = ("normal", "uniform", "sparse", "range_ends")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws values by the distribution, each repeated for three elements on average."""
        count, kind = workload.dims["count"], workload.distribution
        if kind == "range_ends":
            x = draw((count,), torch.int32, kind, generator)
        else:
            x = (100 * draw((count,), torch.float32, kind, generator)).int()
        new = torch.rand(count, generator=generator) < 0.4
        return {"x": x[torch.where(new, torch.arange(count), 0).cummax(0).values]}

    def oracle(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The first elements of runs, and the differences of their places."""
        wide = x.long()
        head = torch.cat((wide.new_ones(1, dtype=torch.bool), wide[1:] != wide[:-1]))
        first = head.nonzero()[:, 0]
        value, length = torch.zeros_like(wide), torch.zeros_like(wide)
        value[: len(first)] = wide[first]
        length[: len(first)] = torch.diff(first, append=first.new_tensor([len(x)]))
        return value, length, head.long().cumsum(0) - 1, head.sum()[None]

    def reference(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Marks, their running sum, and two scatters; no wait for the count."""
        head = torch.ones_like(x)
        head[1:] = (x[1:] != x[:-1]).to(torch.int32)
        inverse = torch.cumsum(head, dim=0) - 1
        value = torch.zeros_like(x).scatter_(0, inverse, x)
        length = torch.zeros_like(inverse).scatter_add_(0, inverse, torch.ones_like(inverse))
        number = inverse[-1:] + 1
        return value, length.to(torch.int32), inverse.to(torch.int32), number.to(torch.int32)

    def flops(self, dims: Dims) -> int:
        """A comparison and an addition for each element."""
        return 2 * dims["count"]


PROBLEM = UniqueConsecutive()
