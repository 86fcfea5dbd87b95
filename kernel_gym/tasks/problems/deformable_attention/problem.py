"""Multi-scale deformable attention: each query samples a few places of four feature maps."""

from __future__ import annotations

import itertools

import torch
import torch.nn.functional as F

from kernel_gym.tasks.distributions import draw
from kernel_gym.tasks.problem import (
    Axis,
    Dims,
    Output,
    Problem,
    ScalarArg,
    TensorArg,
    Value,
    points,
)
from kernel_gym.tasks.workload import Workload

LEVELS = 4
WIDTH = 32


def _sizes(height: int, width: int) -> list[tuple[int, int]]:
    """Height and width of each level, halved and rounded up from one to the next."""
    return [(-(-height >> i), -(-width >> i)) for i in range(LEVELS)]


class DeformableAttention(Problem):
    """`out = sum over levels and points of weight * bilinear sample of value at place`.

    Level l is a map of `ceil(height / 2^l) x ceil(width / 2^l)` rows of value, one level after
    another, row by row. A place (x, y) is in units of the map, from 0 to 1: pixel i has its centre
    at (i + 0.5) / size; outside of the map the value is zero.
    """

    name = "deformable_attention"
    summary = "weighted bilinear samples of four feature maps for each query and head"
    category = "Attention"
    level = 4
    tags = ("vision", "memory-bound", "gather")
    source = "encoder and decoder of Deformable DETR and DINO (8 heads of 32), Mask2Former, RT-DETR"

    args = (
        TensorArg("value", torch.float16, shape="batch, positions of all levels, heads, 32"),
        TensorArg("place", torch.float32, shape="batch, queries, heads, 4, points, 2"),
        TensorArg("weight", torch.float32, shape="batch, queries, heads, 4, points"),
        ScalarArg("height", int),
        ScalarArg("width", int),
    )
    outputs = (Output("out", torch.float16, shape="batch, queries, heads * 32"),)
    axes = (
        Axis("batch", 1, 64),
        Axis("queries", 1, 1 << 15),
        Axis("heads", 1, 32),
        Axis("points", 1, 8),
        Axis("height", 8, 512),
        Axis("width", 8, 512),
    )
    train = points(
        "batch queries heads points height width",
        full=[
            (2, 10720, 8, 4, 80, 100),
            (8, 900, 8, 4, 100, 134),
            (4, 5440, 8, 4, 64, 64),
            (16, 300, 8, 4, 80, 80),
        ],
        sim=[
            (1, 96, 8, 4, 20, 25),
            (2, 56, 8, 4, 25, 33),
            (1, 192, 4, 4, 16, 16),
            (2, 100, 4, 2, 20, 20),
        ],
    )
    production = points(
        "batch queries heads points height width",
        full=[(4, 1000, 8, 4, 128, 128), (2, 4000, 8, 8, 60, 80), (1, 14000, 8, 4, 92, 116)],
        sim=[(1, 64, 8, 4, 32, 32), (1, 40, 8, 8, 15, 20), (1, 128, 4, 4, 23, 29)],
    )
    adversarial = ({"batch": 1, "queries": 3, "heads": 1, "points": 1, "height": 8, "width": 9},)
    distributions = ("normal", "offset", "sparse", "structured")

    def elements(self, dims: Dims) -> int:
        """Samples, and the positions of the maps."""
        samples = dims["batch"] * dims["queries"] * dims["heads"] * LEVELS * dims["points"]
        return samples + dims["batch"] * dims["heads"] * dims["height"] * dims["width"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws value float16, places float32 from -0.1 to 1.1, weights float32 that sum to 1."""
        batch, queries, heads, points_, height, width = (workload.dims[a.name] for a in self.axes)
        positions = sum(h * w for h, w in _sizes(height, width))
        kind = workload.distribution
        shape = (batch, queries, heads, LEVELS, points_)
        score = torch.randn(*shape[:3], LEVELS * points_, generator=generator)
        return {
            "value": draw((batch, positions, heads, WIDTH), torch.float16, kind, generator),
            "place": torch.rand(*shape, 2, generator=generator) * 1.2 - 0.1,
            "weight": torch.softmax(score, dim=-1).view(shape),
            "height": height,
            "width": width,
        }

    def oracle(
        self,
        value: torch.Tensor,
        place: torch.Tensor,
        weight: torch.Tensor,
        height: int,
        width: int,
    ) -> tuple[torch.Tensor, ...]:
        """Corner by corner, in fp64."""
        batch, queries, heads = place.shape[:3]
        out = torch.zeros(batch, queries, heads, WIDTH, dtype=torch.float64, device=value.device)
        image = torch.arange(batch, device=value.device).view(-1, 1, 1, 1)
        head = torch.arange(heads, device=value.device).view(1, 1, -1, 1)
        first = 0
        for i, (rows, cols) in enumerate(_sizes(height, width)):
            x = place[:, :, :, i, :, 0].double() * cols - 0.5
            y = place[:, :, :, i, :, 1].double() * rows - 0.5
            for down, right in itertools.product((0, 1), (0, 1)):
                r, c = y.floor() + down, x.floor() + right
                share = (1 - (y - r).abs()) * (1 - (x - c).abs()) * weight[:, :, :, i].double()
                inside = (r >= 0) & (r < rows) & (c >= 0) & (c < cols)
                at = first + r.clamp(0, rows - 1).long() * cols + c.clamp(0, cols - 1).long()
                out += ((share * inside)[..., None] * value[image, at, head].double()).sum(3)
            first += rows * cols
        return (out.flatten(2),)

    def reference(
        self,
        value: torch.Tensor,
        place: torch.Tensor,
        weight: torch.Tensor,
        height: int,
        width: int,
    ) -> tuple[torch.Tensor, ...]:
        """As Deformable DETR writes it: a grid sample a level, then a weighted sum, in float32."""
        batch, queries, heads = place.shape[:3]
        grids = (2 * place - 1).transpose(1, 2).flatten(0, 1)
        samples, first = [], 0
        for i in range(4):
            rows, cols = -(-height >> i), -(-width >> i)
            part = value[:, first : first + rows * cols].permute(0, 2, 3, 1).float()
            image = part.reshape(batch * heads, 32, rows, cols)
            samples.append(F.grid_sample(image, grids[:, :, i], align_corners=False))
            first += rows * cols
        shares = weight.transpose(1, 2).reshape(batch * heads, 1, queries, -1)
        out = (torch.cat(samples, dim=-1) * shares).sum(-1)
        return (out.view(batch, heads * 32, queries).transpose(1, 2).contiguous().half(),)

    def bytes(self, dims: Dims) -> int:
        """Read places (8 bytes each) and weights (4), write out; no value need be read twice."""
        heads = dims["batch"] * dims["queries"] * dims["heads"]
        return heads * (12 * LEVELS * dims["points"] + 2 * WIDTH)

    def flops(self, dims: Dims) -> int:
        """Four corners for each sample and channel, a product and an addition each."""
        heads = dims["batch"] * dims["queries"] * dims["heads"]
        return 8 * heads * LEVELS * dims["points"] * WIDTH


PROBLEM = DeformableAttention()
