"""Running sums that start again at marked elements."""

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


class SegmentedScan(Problem):
    """`out[i] = x[s] + ... + x[i]`, where s is the last marked element at or before i, or 0.

    Element i is marked if `head[i]` is not 0. Two marked elements may be neighbours.
    """

    name = "segmented_scan"
    summary = "inclusive sums of a long array that start again at each marked element"
    category = "Reduce-and-scan"
    level = 4
    tags = ("recommender", "graph", "memory-bound", "scan")
    source = "jagged tensors of DLRM batches, CSR edges of ogbn-arxiv and ogbn-products"
    domain = "All floating-point inputs are finite. Any element may be marked, or none."

    args = (
        TensorArg("x", torch.float32, shape="count"),
        TensorArg("head", torch.uint8, shape="count"),
    )
    outputs = (Output("out", torch.float32, shape="count"),)
    axes = (Axis("count", 1, 1 << 26),)
    train = points(
        "count",
        full=[(1 << 24,), (1166243,), (8000000,), (262144,)],
        sim=[(1 << 16,), (30000,), (100000,), (8192,)],
    )
    production = points(
        "count",
        full=[
            *((61859140,), (2315598,), (1 << 20,), (5000000,), (42000000,), (30000000,)),
            *((16777216,), (33554432,), (1166243,), (169343,), (2449029,), (10000000,)),
        ],
        sim=[
            *((61859,), (23155,), (1 << 14,), (90000,), (12371,), (11461,)),
            *((65536,), (33554,), (11662,), (16934,), (24490,), (50000,)),
        ],
    )
    adversarial = ({"count": 1}, {"count": 70})
    distributions = ("normal", "offset", "uniform", "sparse")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x by the distribution, and marks, dense in the first half and rare in the other."""
        count = workload.dims["count"]
        rate = torch.where(torch.arange(count) < count // 2, 0.2, 1e-3)
        return {
            "x": draw((count,), torch.float32, workload.distribution, generator),
            "head": (torch.rand(count, generator=generator) < rate).to(torch.uint8),
        }

    def oracle(self, x: torch.Tensor, head: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Segment by segment, in fp64: a large value must not reach into later segments."""
        return (self._by_segment(x.double(), head),)

    def reference(self, x: torch.Tensor, head: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The running sum less that before the segment, in fp64 since it cancels."""
        wide = x.double()
        sums = torch.cumsum(wide, dim=0)
        place = torch.arange(x.shape[0], device=x.device)
        start = torch.cummax(torch.where(head != 0, place, 0), dim=0).values
        return ((sums - (sums - wide)[start]).float(),)

    def yardstick(self, x: torch.Tensor, head: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """In float32, segment by segment."""
        return (self._by_segment(x, head),)

    def _by_segment(self, x: torch.Tensor, head: torch.Tensor) -> torch.Tensor:
        """Element by element: step i adds element i of all segments that have one."""
        place = torch.arange(len(x), device=x.device)
        starts = place[(head != 0) | (place == 0)]
        ends = torch.cat((starts[1:], place[-1:] + 1))
        lengths, by_length = (ends - starts).sort(descending=True)
        starts, out = starts[by_length], x.clone()
        longer = len(starts) - lengths.bincount().cumsum(0)  # segments with more than i elements
        for i, number in enumerate(longer.tolist()[1:-1], start=1):
            at = starts[:number] + i
            out[at] += out[at - 1]
        return out

    def flops(self, dims: Dims) -> int:
        """An addition for each element."""
        return dims["count"]


PROBLEM = SegmentedScan()
