"""Nearest neighbours in point clouds."""

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
    ScalarArg,
    TensorArg,
    Value,
    points,
)
from kernel_gym.tasks.workload import Workload

GRID = 256
"""Steps of a coordinate in one unit: more digits than bfloat16 has."""


class Knn(Problem):
    """Squared distances and indices of the `count` nearest points of each query, nearest first."""

    name = "knn"
    summary = "squared distances and indices of the `count` nearest points of each query"
    category = "Index"
    level = 4
    tags = ("point-cloud", "protein", "vision", "compute-bound", "sort")
    source = "DGCNN (20 of 1024), Point Transformer (16), PointNeXt (32), ProteinMPNN (30 or 48)"
    domain = (
        "Coordinates are multiples of 1 / 256 within -4 and 4, so that squared distances are exact "
        "in float32. Distances may be equal: then any of the points is right."
    )

    args = (
        TensorArg("queries", torch.float32, shape="batch, query_count, 3"),
        TensorArg("points", torch.float32, shape="batch, size, 3"),
        ScalarArg("count", int),
    )
    outputs = (
        Output("distance", torch.float32, check=Check.EXACT, shape="batch, query_count, count"),
        Output("index", torch.int32, check=Check.CUSTOM, shape="batch, query_count, count"),
    )
    axes = (
        Axis("batch", 1, 256),
        Axis("query_count", 1, 1 << 15),
        Axis("size", 1, 1 << 16),
        Axis("count", 1, 64),
    )
    train = points(
        "batch query_count size count",
        full=[(32, 1024, 1024, 20), (8, 4096, 4096, 16), (16, 2048, 8192, 32), (16, 512, 512, 48)],
        sim=[(2, 64, 128, 20), (1, 64, 256, 16), (1, 32, 300, 32), (2, 64, 64, 48)],
    )
    production = points(
        "batch query_count size count",
        full=[(8, 1024, 16384, 3), (64, 256, 256, 30), (4, 4096, 8192, 24)],
        sim=[(1, 128, 512, 3), (2, 48, 64, 30), (1, 48, 200, 24)],
    )
    adversarial = (
        {"batch": 1, "query_count": 3, "size": 1, "count": 1},
        {"batch": 2, "query_count": 1, "size": 7, "count": 7},
    )
    distributions = ("normal", "uniform", "structured")
    tiny_inputs = False

    def legal(self, dims: Dims) -> bool:
        """On its axes, with as many points as are wanted."""
        return super().legal(dims) and dims["count"] <= dims["size"]

    def elements(self, dims: Dims) -> int:
        """Pairs of a query and a point."""
        return dims["batch"] * dims["query_count"] * dims["size"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws both on the grid, so that distances are exact in float32 and may tie.

        A quarter of the queries are points themselves, as in the graph of a cloud.
        """
        batch, queries, count, most = (workload.dims[axis.name] for axis in self.axes)

        def cloud(size: int) -> torch.Tensor:
            x = draw((batch, 3, size), torch.float32, workload.distribution, generator).mT
            return ((x.clamp(-4, 4) * GRID).round() / GRID).contiguous()

        points = cloud(count)
        same = torch.randint(count, (batch, queries, 1), generator=generator)
        chosen = torch.rand((batch, queries, 1), generator=generator) < 1 / 4
        copies = points.gather(1, same.expand(-1, -1, 3))
        return {
            "queries": torch.where(chosen, copies, cloud(queries)),
            "points": points,
            "count": most,
        }

    def oracle(
        self, queries: torch.Tensor, points: torch.Tensor, count: int
    ) -> tuple[torch.Tensor, ...]:
        """Cloud by cloud, in fp64."""
        distances, indices = [], []
        for q, p in zip(queries.double(), points.double(), strict=True):
            apart = (q[:, None] - p).square().sum(2).sort(dim=1)
            distances.append(apart.values[:, :count])
            indices.append(apart.indices[:, :count])
        return torch.stack(distances), torch.stack(indices)

    def reference(
        self, queries: torch.Tensor, points: torch.Tensor, count: int
    ) -> tuple[torch.Tensor, ...]:
        """All distances, then a top-k."""
        apart = queries[:, :, None, :] - points[:, None, :, :]
        near = torch.topk((apart * apart).sum(dim=3), count, dim=2, largest=False, sorted=True)
        return near.values, near.indices.to(torch.int32)

    def mismatches(
        self, name: str, found: torch.Tensor, inputs: Mapping[str, Value], expected: torch.Tensor
    ) -> torch.Tensor:
        """Indices must be distinct and in range, and lie at the oracle's distances."""
        queries, points = inputs["queries"], inputs["points"]
        if name != "index" or not isinstance(queries, torch.Tensor):
            return super().mismatches(name, found, inputs, expected)
        assert isinstance(points, torch.Tensor)
        size = points.shape[1]
        outside = (found < 0) | (found >= size)
        ordered = found.sort(dim=2).values
        twice = (ordered.diff(dim=2) == 0).any(dim=2, keepdim=True)

        def distance(index: torch.Tensor) -> torch.Tensor:
            flat = index.long().clamp(0, size - 1).flatten(1)[:, :, None].expand(-1, -1, 3)
            apart = points.gather(1, flat).view(*index.shape, 3) - queries[:, :, None]
            return apart.square().sum(3)

        return outside | twice | (distance(found) != distance(expected))

    def flops(self, dims: Dims) -> int:
        """A comparison for each query and place; how many distances are needed is not known."""
        return dims["batch"] * dims["query_count"] * dims["count"]


PROBLEM = Knn()
