"""Non-maximum suppression of boxes that come sorted by score."""

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


class Nms(Problem):
    """A box is kept unless a kept box before it covers it by more than the threshold."""

    name = "nms"
    summary = (
        "greedy non-maximum suppression: boxes (x0, y0, x1, y1) come by falling score; box j is "
        "kept (1) unless a kept box i < j has intersection > threshold * union with it (0); "
        "coordinates are whole numbers below 4096, so float32 areas are exact"
    )
    category = "Index"
    level = 5
    tags = ("vision", "selection")
    source = (
        "region proposals of Faster R-CNN (1000, 2000), heads of YOLOv5 and RetinaNet (300 to 1024)"
    )

    args = (
        TensorArg("boxes", torch.float32, shape="batch, count, 4"),
        ScalarArg("threshold", float),
    )
    outputs = (Output("keep", torch.uint8, check=Check.EXACT, shape="batch, count"),)
    axes = (Axis("batch", 1, 1 << 14), Axis("count", 1, 8192))
    train = points(
        "batch count",
        full=[(512, 1000), (256, 2000), (1024, 512), (2048, 300), (128, 1024)],
        sim=[(8, 128), (4, 200), (16, 64), (3, 300)],
    )
    production = points(
        "batch count",
        full=[(640, 800), (1280, 256), (64, 4000)],
        sim=[(6, 150), (20, 50), (2, 350)],
    )
    exchangeable = False
    adversarial = ({"batch": 2, "count": 1},)
    distributions = ("uniform", "normal", "heavy_tail", "structured")

    def elements(self, dims: Dims) -> int:
        """Pairs of boxes."""
        return dims["batch"] * dims["count"] ** 2

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws centres by the distribution, crowded as objects are, and sizes from 16 to 256."""
        batch, count = workload.dims["batch"], workload.dims["count"]
        spread = draw((batch, 2, count), torch.float32, workload.distribution, generator)
        centre = (1024 + 200 * spread.transpose(1, 2)).clamp(300, 3700).round()
        half = torch.randint(8, 129, (batch, count, 2), generator=generator).float()
        return {"boxes": torch.cat([centre - half, centre + half], dim=2), "threshold": 0.5}

    def output_shapes(self, dims: Dims) -> dict[str, tuple[int, ...]]:
        """One flag a box."""
        return {"keep": (dims["batch"], dims["count"])}

    def oracle(self, boxes: torch.Tensor, threshold: float) -> tuple[torch.Tensor, ...]:
        """All overlaps first, then box after box in fp64."""
        low, high = boxes.double()[..., :2], boxes.double()[..., 2:]
        area = (high - low).prod(-1)
        upper = torch.minimum(high[:, :, None], high[:, None])
        sides = (upper - torch.maximum(low[:, :, None], low[:, None])).clamp(min=0)
        common = sides.prod(-1)
        covers = common > threshold * (area[:, :, None] + area[:, None] - common)
        keep = torch.ones(boxes.shape[:2], dtype=torch.int64, device=boxes.device)
        for i in range(boxes.shape[1] - 1):
            keep[:, i + 1 :] *= 1 - keep[:, i : i + 1] * covers[:, i, i + 1 :]
        return (keep,)

    def reference(self, boxes: torch.Tensor, threshold: float) -> tuple[torch.Tensor, ...]:
        """The same in float32, which is exact here."""
        x0, y0, x1, y1 = boxes.unbind(2)
        area = (x1 - x0) * (y1 - y0)
        width = torch.minimum(x1[:, :, None], x1[:, None]) - torch.maximum(
            x0[:, :, None], x0[:, None]
        )
        height = torch.minimum(y1[:, :, None], y1[:, None]) - torch.maximum(
            y0[:, :, None], y0[:, None]
        )
        common = width.clamp(min=0) * height.clamp(min=0)
        covers = common > threshold * (area[:, :, None] + area[:, None] - common)
        keep = torch.ones(boxes.shape[:2], dtype=torch.bool, device=boxes.device)
        for i in range(boxes.shape[1] - 1):
            later = keep[:, i + 1 :] & ~(keep[:, i : i + 1] & covers[:, i, i + 1 :])
            keep = torch.cat([keep[:, : i + 1], later], dim=1)
        return (keep.to(torch.uint8),)

    def bytes(self, dims: Dims) -> int:
        """Read boxes (16 bytes each), write flags (1)."""
        return 17 * dims["batch"] * dims["count"]

    def flops(self, dims: Dims) -> int:
        """One comparison of each box with the first, ten operations each."""
        return 10 * dims["batch"] * dims["count"]


PROBLEM = Nms()
