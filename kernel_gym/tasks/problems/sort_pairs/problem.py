"""Stable sort of a long array of keys with their values."""

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


class SortPairs(Problem):
    """`new_key` is `key` in ascending order, `new_value[i]` the value that belongs to it.

    Pairs with equal keys keep their order.
    """

    name = "sort_pairs"
    summary = "stable ascending sort of int32 keys, and their int32 values with them"
    category = "Reduce-and-scan"
    level = 5
    tags = ("recommender", "graph", "memory-bound", "sort")
    source = "radix sorts of CUB and hipCUB: rows of DLRM tables, tile keys of Gaussian splatting"
    domain = "Any int32 key and value is legal; keys may repeat."

    args = (
        TensorArg("key", torch.int32, shape="count"),
        TensorArg("value", torch.int32, shape="count"),
    )
    outputs = (
        Output("new_key", torch.int32, check=Check.EXACT, shape="count"),
        Output("new_value", torch.int32, check=Check.EXACT, shape="count"),
    )
    axes = (Axis("count", 1, 1 << 25),)
    train = points(
        "count",
        full=[(1 << 22,), (1000000,), (1 << 24,), (65536,)],
        sim=[(1 << 14,), (10000,), (30000,), (4096,)],
    )
    production = points(
        "count",
        full=[
            *((5000000,), (1 << 20,), (212992,), (12345678,), (1 << 22,), (2000000,)),
            *((10000000,), (600000,), (131072,), (3000000,), (8000000,), (777777,)),
        ],
        sim=[
            *((20000,), (1 << 13,), (5325,), (12345,), (16384,), (8000,)),
            *((10000,), (6000,), (4096,), (15000,), (18000,), (7777,)),
        ],
    )
    adversarial = ({"count": 1}, {"count": 77})
    distributions = ("normal", "uniform", "sparse", "range_ends")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws keys of all magnitudes by the distribution, and any values."""
        count, kind = workload.dims["count"], workload.distribution
        if kind == "range_ends":
            key = draw((count,), torch.int32, kind, generator)
        else:
            size = {"uniform": 2**31 - 1, "sparse": 300}.get(kind, 2**26)
            key = (draw((count,), torch.float32, kind, generator).double() * size).int()
        value = torch.randint(-(1 << 31), 1 << 31, (count,), generator=generator)
        return {"key": key, "value": value.int()}

    def oracle(self, key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """PyTorch's stable sort of int64 keys."""
        keys, order = key.long().sort(stable=True)
        return keys, value.long()[order]

    def reference(self, key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """A stable sort and a gather."""
        keys, order = torch.sort(key, stable=True)
        return keys, value[order]

    def flops(self, dims: Dims) -> int:
        """A digit of four passes for each key."""
        return 4 * dims["count"]


PROBLEM = SortPairs()
