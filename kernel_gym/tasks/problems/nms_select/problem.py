"""Greedy selection of boxes that do not overlap much (non-maximum suppression)."""

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


class NmsSelect(Problem):
    """Boxes come best first. A box is kept unless a kept box before it overlaps it by too much.

    Too much is `intersection > threshold * union`. Boxes are `x0, y0, x1, y1`, whole numbers below
    512.
    """

    name = "nms_select"
    summary = "greedy non-maximum suppression: 1 for each box that is kept, else 0"
    category = "Index"
    level = 4
    tags = ("vision", "sequential", "compute-bound")
    source = "Faster R-CNN (1000 and 2000 proposals), YOLOv8 (300 to 1000 candidates), RetinaNet"
    domain = "All floating-point inputs are finite. Boxes may be equal or have no area."
    fair_reference = False

    args = (
        TensorArg("boxes", torch.float32, shape="batch, count, 4"),
        ScalarArg("threshold", float),
    )
    outputs = (Output("keep", torch.int32, check=Check.EXACT, shape="batch, count"),)
    axes = (Axis("batch", 1, 1 << 14), Axis("count", 1, 4096))
    train = points(
        "batch count",
        full=[(512, 1000), (256, 2000), (1024, 300), (2048, 150)],
        sim=[(4, 250), (2, 384), (16, 75), (24, 60)],
    )
    production = points(
        "batch count",
        full=[(80, 500), (128, 1024), (512, 100)],
        sim=[(10, 125), (6, 200), (24, 64)],
    )
    exchangeable = False
    adversarial = ({"batch": 2, "count": 1}, {"batch": 3, "count": 9})
    distributions = ("normal", "uniform", "structured")

    def elements(self, dims: Dims) -> int:
        """Pairs of boxes."""
        return dims["batch"] * dims["count"] ** 2

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws whole coordinates up to 511 and an eighth as threshold: all areas are exact."""
        batch, count = workload.dims["batch"], workload.dims["count"]
        middle = draw((batch, 2, count), torch.float32, workload.distribution, generator).mT
        middle = (256 + 60 * middle.clamp(-3, 3)).round()
        size = torch.randint(8, 70, (batch, count, 2), generator=generator)
        eighths = int(torch.randint(2, 7, (), generator=generator))
        return {
            "boxes": torch.cat([middle - size // 2, middle - size // 2 + size], dim=2),
            "threshold": eighths / 8,
        }

    def oracle(self, boxes: torch.Tensor, threshold: float) -> tuple[torch.Tensor, ...]:
        """Box by box, in all images at once: the next is compared with the kept ones."""
        rows = boxes.double()
        area = (rows[:, :, 2:] - rows[:, :, :2]).prod(dim=2)
        keep = torch.zeros(boxes.shape[:2], dtype=torch.bool, device=boxes.device)
        for i in range(boxes.shape[1]):
            box, before = rows[:, i : i + 1], rows[:, :i]
            low = torch.maximum(before[..., :2], box[..., :2])
            high = torch.minimum(before[..., 2:], box[..., 2:])
            shared = (high - low).clamp(min=0).prod(dim=2)
            union = area[:, :i] + area[:, i : i + 1] - shared
            keep[:, i] = ~((shared > threshold * union) & keep[:, :i]).any(dim=1)
        return (keep.long(),)

    def reference(self, boxes: torch.Tensor, threshold: float) -> tuple[torch.Tensor, ...]:
        """All overlaps at once, then a loop over the boxes."""
        low_x, low_y, high_x, high_y = boxes.unbind(dim=2)
        wide = torch.minimum(high_x[:, :, None], high_x[:, None])
        wide = (wide - torch.maximum(low_x[:, :, None], low_x[:, None])).clamp(min=0)
        tall = torch.minimum(high_y[:, :, None], high_y[:, None])
        tall = (tall - torch.maximum(low_y[:, :, None], low_y[:, None])).clamp(min=0)
        shared = wide * tall
        area = (boxes[:, :, 2:] - boxes[:, :, :2]).prod(dim=2)
        union = area[:, :, None] + area[:, None, :] - shared
        struck = torch.triu(shared > threshold * union, diagonal=1)
        keep = torch.ones(boxes.shape[:2], dtype=torch.bool, device=boxes.device)
        for i in range(boxes.shape[1]):
            keep = keep & ~(struck[:, i] & keep[:, i : i + 1])
        return (keep.to(torch.int32),)

    def flops(self, dims: Dims) -> int:
        """About 12 for each box but the first, which one box at least must be compared with."""
        return 12 * dims["batch"] * (dims["count"] - 1)


PROBLEM = NmsSelect()
