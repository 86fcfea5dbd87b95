"""Neighbours within a radius, as point networks group them."""

from __future__ import annotations

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


class BallQuery(Problem):
    """The first `count` indices of points closer than `radius` to each centre, in order.

    If there are fewer, the first of them fills the rest; if there are none, 0.
    """

    name = "ball_query"
    summary = "first `count` points nearer than radius to each centre, padded with the first found"
    category = "Index"
    level = 3
    tags = ("point-cloud", "vision", "compute-bound", "gather")
    source = "set abstraction of PointNet++ (SSG, MSG), VoteNet (20000 points) and PV-RCNN"
    domain = (
        "Coordinates are multiples of 1 / 256 and no distance equals the radius, so that float32 "
        "decides which points are near. A centre may have no point within the radius."
    )

    args = (
        TensorArg("points", torch.float32, shape="batch, size, 3"),
        TensorArg("centres", torch.float32, shape="batch, centre_count, 3"),
        ScalarArg("radius", float),
        ScalarArg("count", int),
    )
    outputs = (Output("index", torch.int32, check=Check.EXACT, shape="batch, centre_count, count"),)
    axes = (
        Axis("batch", 1, 256),
        Axis("size", 1, 1 << 16),
        Axis("centre_count", 1, 1 << 14),
        Axis("count", 1, 128),
    )
    train = points(
        "batch size centre_count count",
        full=[(32, 4096, 1024, 32), (8, 20000, 2048, 64), (64, 1024, 512, 16)],
        sim=[(2, 512, 128, 32), (1, 1250, 128, 64), (4, 256, 96, 16)],
    )
    production = points(
        "batch size centre_count count",
        full=[(32, 2048, 512, 128), (16, 8192, 1024, 32), (4, 16384, 4096, 16)],
        sim=[(1, 256, 64, 128), (2, 1000, 64, 32), (1, 800, 200, 16)],
    )
    adversarial = ({"batch": 1, "size": 1, "centre_count": 3, "count": 2},)
    distributions = ("normal", "uniform", "structured")

    def elements(self, dims: Dims) -> int:
        """Pairs of a point and a centre."""
        return dims["batch"] * dims["size"] * dims["centre_count"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws points on the grid, so that distances are exact in float32.

        Centres are points, a tenth of them moved far away; no distance equals the radius.
        """
        batch, count, centres, most = (workload.dims[axis.name] for axis in self.axes)
        cloud = draw((batch, 3, count), torch.float32, workload.distribution, generator).mT
        cloud = (cloud.clamp(-4, 4) * GRID).round() / GRID
        at = torch.randint(0, count, (batch, centres, 1), generator=generator)
        middle = cloud.gather(1, at.expand(-1, -1, 3))
        middle = middle + 16 * (torch.rand(batch, centres, 1, generator=generator) < 0.1)
        radius = (int(torch.randint(GRID // 4, GRID, (), generator=generator)) + 0.5) / GRID
        return {
            "points": cloud.contiguous(),
            "centres": middle.contiguous(),
            "radius": radius,
            "count": most,
        }

    def oracle(
        self, points: torch.Tensor, centres: torch.Tensor, radius: float, count: int
    ) -> tuple[torch.Tensor, ...]:
        """Cloud by cloud: near points rank by how many near ones come before them."""
        out = torch.zeros(*centres.shape[:2], count, dtype=torch.int64, device=points.device)
        for b in range(points.shape[0]):
            apart = centres[b].double()[:, None] - points[b].double()
            near = apart.square().sum(2) < radius * radius
            rank = near.cumsum(1) - 1
            out[b] = near.long().argmax(1, keepdim=True)
            centre, point = (near & (rank < count)).nonzero().unbind(1)
            out[b, centre, rank[centre, point]] = point
        return (out,)

    def reference(
        self, points: torch.Tensor, centres: torch.Tensor, radius: float, count: int
    ) -> tuple[torch.Tensor, ...]:
        """As PyTorch ports of PointNet++ write it: mark far points, sort indices, cut."""
        size = points.shape[1]
        apart = centres[:, :, None, :] - points[:, None, :, :]
        far = (apart * apart).sum(dim=3) >= radius * radius
        index = torch.arange(size, device=points.device).expand(far.shape)
        index = torch.sort(index.masked_fill(far, size), dim=2).values[:, :, :count]
        first = index[:, :, :1]
        index = torch.where(index == size, first, index)
        index = torch.cat([index, first.expand(-1, -1, max(0, count - size))], dim=2)
        return (torch.where(index == size, 0, index).to(torch.int32),)

    def bytes(self, dims: Dims) -> int:
        """Read centres, write indices, 4 bytes each; points only until enough are found."""
        return 4 * dims["batch"] * dims["centre_count"] * (3 + dims["count"])

    def flops(self, dims: Dims) -> int:
        """At least one distance of 8 for each centre."""
        return 8 * dims["batch"] * dims["centre_count"]


PROBLEM = BallQuery()
