"""Furthest point sampling of point clouds."""

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

GRID = 64


class FurthestPointSampling(Problem):
    """`index[b, 0] = 0`; each next index is the point furthest from the points chosen before.

    The distance of a point from a set is the least distance from its members. Of several furthest
    points the one with the lowest index is chosen, also if it was chosen before.
    """

    name = "furthest_point_sampling"
    summary = "indices of `count` points of each cloud, each the furthest from those before"
    category = "Index"
    level = 4
    tags = ("point-cloud", "vision", "sequential", "reduction")
    source = "set abstraction of PointNet++ and VoteNet, keypoints of PV-RCNN (2048 of 8192)"
    domain = (
        "Coordinates are multiples of 1 / 64 within -4 and 4, so that squared distances are exact "
        "in float32. Points may be equal."
    )
    fair_reference = False

    args = (
        TensorArg("points", torch.float32, shape="batch, size, 3"),
        ScalarArg("count", int),
    )
    outputs = (Output("index", torch.int32, check=Check.EXACT, shape="batch, count"),)
    axes = (Axis("batch", 1, 256), Axis("size", 1, 12288), Axis("count", 1, 4096))
    train = points(
        "batch size count",
        full=[(32, 1024, 512), (16, 4096, 1024), (8, 8192, 2048), (64, 2048, 256)],
        sim=[(4, 512, 64), (2, 1000, 64), (1, 2048, 48), (8, 256, 96)],
    )
    production = points(
        "batch size count",
        full=[(24, 1024, 1024), (4, 10000, 1024), (64, 512, 128), (16, 3000, 384)],
        sim=[(6, 256, 200), (1, 1500, 80), (12, 400, 40), (3, 900, 60)],
    )
    adversarial = (
        {"batch": 3, "size": 1, "count": 1},
        {"batch": 2, "size": 7, "count": 7},
    )
    distributions = ("normal", "uniform", "structured", "constant_rows")
    tiny_inputs = False

    def legal(self, dims: Dims) -> bool:
        """On its axes, with no more choices than points."""
        return super().legal(dims) and dims["count"] <= dims["size"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws points on a grid of 1 / 64 by the distribution."""
        batch, size, count = (workload.dims[axis.name] for axis in self.axes)
        cloud = draw((batch, size, 3), torch.float32, workload.distribution, generator)
        return {"points": (cloud.clamp(-4, 4) * GRID).round() / GRID, "count": count}

    def oracle(self, points: torch.Tensor, count: int) -> tuple[torch.Tensor, ...]:
        """All clouds at once, a choice at a time, in fp64."""
        batch, size, _ = points.shape
        wide = points.double()
        near = torch.full((batch, size), torch.inf, dtype=torch.float64, device=points.device)
        index = torch.zeros(batch, count, dtype=torch.int64, device=points.device)
        rows = torch.arange(batch, device=points.device)
        place = torch.arange(size, device=points.device)
        for i in range(1, count):
            last = wide[rows, index[:, i - 1]][:, None]
            near = torch.minimum(near, (wide - last).square().sum(2))
            top = near == near.amax(1, keepdim=True)
            index[:, i] = torch.where(top, place, size).amin(1)
        return (index,)

    def reference(self, points: torch.Tensor, count: int) -> tuple[torch.Tensor, ...]:
        """As PyTorch ports of PointNet++ write it."""
        batch, size, _ = points.shape
        near = torch.full((batch, size), 1e10, dtype=points.dtype, device=points.device)
        index = torch.zeros(batch, count, dtype=torch.int32, device=points.device)
        place = torch.arange(size, dtype=torch.int32, device=points.device)
        last = torch.zeros((batch, 1, 1), dtype=torch.int64, device=points.device)
        for i in range(1, count):
            apart = points - torch.gather(points, 1, last.expand(-1, -1, 3))
            near = torch.minimum(near, (apart * apart).sum(dim=2))
            top = near == near.amax(dim=1, keepdim=True)
            index[:, i] = torch.where(top, place, size).amin(dim=1)
            last = index[:, i].long()[:, None, None]
        return (index,)

    def flops(self, dims: Dims) -> int:
        """A distance of 8 and two comparisons for each point and choice after the first."""
        return 10 * dims["batch"] * dims["size"] * (dims["count"] - 1)


PROBLEM = FurthestPointSampling()
