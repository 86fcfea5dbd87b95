"""Interpolation of point features from three neighbours."""

from __future__ import annotations

import torch

from kernel_gym.tasks.distributions import draw, draw_index
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


class ThreeInterpolate(Problem):
    """`out[b, c, i] = sum over j of weight[b, i, j] * x[b, c, index[b, i, j]]`, j from 0 to 2."""

    name = "three_interpolate"
    summary = "weighted sum of the features of three known points for each point, by channel"
    category = "Index"
    level = 2
    tags = ("point-cloud", "vision", "memory-bound", "gather")
    source = "feature propagation of PointNet++ (SSG) and VoteNet: 64 to 4096 points"
    domain = "All floating-point inputs are finite. Indices of a point may be equal."

    args = (
        TensorArg("x", torch.float16, shape="batch, channels, known"),
        TensorArg("index", torch.int32, shape="batch, count, 3"),
        TensorArg("weight", torch.float32, shape="batch, count, 3"),
    )
    outputs = (Output("out", torch.float16, shape="batch, channels, count"),)
    axes = (
        Axis("batch", 1, 256),
        Axis("channels", 1, 4096),
        Axis("known", 1, 1 << 16),
        Axis("count", 1, 1 << 17),
    )
    train = points(
        "batch channels known count",
        full=[
            (16, 256, 1024, 4096),
            (32, 512, 64, 256),
            (8, 256, 512, 1024),
            (16, 128, 2048, 20000),
        ],
        sim=[(2, 64, 256, 1024), (4, 128, 64, 256), (2, 64, 128, 500), (1, 32, 512, 5000)],
    )
    production = points(
        "batch channels known count",
        full=[(32, 512, 16, 64), (8, 256, 256, 1024), (4, 96, 4096, 16384), (16, 1024, 128, 512)],
        sim=[(8, 256, 16, 64), (1, 128, 256, 1024), (1, 24, 1024, 4096), (2, 256, 128, 400)],
    )
    adversarial = (
        {"batch": 2, "channels": 3, "known": 1, "count": 5},
        {"batch": 1, "channels": 1, "known": 7, "count": 1},
    )
    distributions = ("normal", "offset", "uniform", "sparse")

    def elements(self, dims: Dims) -> int:
        """Outputs."""
        return dims["batch"] * dims["channels"] * dims["count"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws features by the distribution, indices, and weights that add up to one."""
        batch, channels, known, count = (workload.dims[axis.name] for axis in self.axes)
        near = torch.rand((batch, count, 3), generator=generator) + 1e-3
        index = draw_index((batch, count, 3), known, "uniform", generator)
        return {
            "x": draw((batch, channels, known), torch.float16, workload.distribution, generator),
            "index": index.int(),
            "weight": near / near.sum(2, keepdim=True),
        }

    def oracle(
        self, x: torch.Tensor, index: torch.Tensor, weight: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Cloud by cloud, in fp64."""
        out = [
            (features.double()[:, at.long()] * share.double()).sum(2)
            for features, at, share in zip(x, index, weight, strict=True)
        ]
        return (torch.stack(out),)

    def reference(
        self, x: torch.Tensor, index: torch.Tensor, weight: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """One gather, then a product and a sum in float32."""
        batch, channels, _ = x.shape
        count = index.shape[1]
        at = index.long().view(batch, 1, 3 * count).expand(-1, channels, -1)
        near = torch.gather(x, 2, at).view(batch, channels, count, 3).float()
        return ((near * weight[:, None]).sum(dim=3).half(),)

    def bytes(self, dims: Dims) -> int:
        """Reads indices, weights and at least one feature of each channel; writes outputs."""
        batch, channels, _, count = (dims[axis.name] for axis in self.axes)
        return batch * (24 * count + 2 * channels + 2 * channels * count)

    def flops(self, dims: Dims) -> int:
        """Three products and two additions for each output."""
        return 5 * self.elements(dims)


PROBLEM = ThreeInterpolate()
