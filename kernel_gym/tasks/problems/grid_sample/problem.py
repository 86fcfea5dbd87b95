"""Bilinear samples of an image at given places."""

from __future__ import annotations

import torch
import torch.nn.functional as F

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


class GridSample(Problem):
    """Samples each image at the places (x, y) of its own grid, with bilinear weights.

    -1 and 1 are the outer edges of the image (align_corners=False). Pixels outside count as zero.
    """

    name = "grid_sample"
    summary = "bilinear samples of each image at the places of a grid, zeros outside"
    category = "Pooling"
    level = 4
    tags = ("vision", "memory-bound", "gather")
    source = "warps of RAFT on Sintel, BEVFormer's reference points, spatial transformers, LIIF"

    args = (
        TensorArg("x", torch.float16, shape="batch, channels, height, width"),
        TensorArg("grid", torch.float32, shape="batch, places, 2"),
    )
    outputs = (Output("out", torch.float16, shape="batch, channels, places"),)
    axes = (
        Axis("batch", 1, 4096),
        Axis("channels", 1, 4096),
        Axis("height", 1, 2048),
        Axis("width", 1, 2048),
        Axis("places", 1, 1 << 22),
    )
    train = points(
        "batch channels height width places",
        full=[
            (4, 128, 55, 128, 7040),
            (6, 256, 58, 100, 40000),
            (32, 64, 64, 64, 4096),
            (8, 3, 436, 1024, 446464),
            (16, 64, 96, 96, 16384),
        ],
        sim=[
            (1, 16, 55, 64, 1000),
            (2, 16, 29, 50, 2000),
            (4, 16, 32, 32, 1024),
            (1, 3, 128, 256, 8000),
        ],
    )
    production = points(
        "batch channels height width places",
        full=[(8, 256, 50, 50, 10000), (64, 32, 64, 64, 4096), (2, 128, 160, 240, 38400)],
        sim=[(1, 32, 50, 50, 1000), (8, 8, 32, 32, 1024), (1, 16, 80, 60, 2400)],
    )
    adversarial = ({"batch": 2, "channels": 3, "height": 1, "width": 2, "places": 5},)
    distributions = ("normal", "uniform", "structured", "sparse")

    def elements(self, dims: Dims) -> int:
        """Elements of x and the output."""
        pixels = dims["height"] * dims["width"] + dims["places"]
        return dims["batch"] * dims["channels"] * pixels

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x by the distribution, and places a tenth beyond the edges."""
        batch, channels, height, width, places = (workload.dims[axis.name] for axis in self.axes)
        shape = (batch, channels, height, width)
        grid = 2.2 * torch.rand((batch, places, 2), generator=generator) - 1.1
        return {"x": draw(shape, torch.float16, workload.distribution, generator), "grid": grid}

    def oracle(self, x: torch.Tensor, grid: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Four corners, weighted by the opposite areas, in a plane with a margin of zeros."""
        batch, channels, height, width = x.shape
        padded = F.pad(x.double(), (2, 2, 2, 2)).reshape(batch, channels, -1)
        sides = torch.tensor([width, height], dtype=torch.float64, device=x.device)
        place = ((grid.double() + 1) * sides - 1) / 2
        place = torch.minimum(place.clamp(min=-2), sides)
        corner = place.floor()
        out = torch.zeros((batch, channels, grid.shape[1]), dtype=torch.float64, device=x.device)
        for dx in (0, 1):
            for dy in (0, 1):
                at = corner + torch.tensor([dx, dy], dtype=torch.float64, device=x.device)
                weight = (1 - (place - at).abs()).prod(-1)
                flat = ((at[..., 1] + 2) * (width + 4) + at[..., 0] + 2).long()
                values = padded.gather(2, flat[:, None].expand(-1, channels, -1))
                out += weight[:, None] * values
        return (out,)

    def reference(self, x: torch.Tensor, grid: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One PyTorch call in float32, rounded once."""
        out = F.grid_sample(
            x.float(), grid[:, None], mode="bilinear", padding_mode="zeros", align_corners=False
        )
        return (out[:, :, 0].half(),)

    def bytes(self, dims: Dims) -> int:
        """Read the grid (8 bytes a place), write out (2); of the image what must be read is open.

        Places may fall on few pixels: a quarter of the smaller of pixels and places is counted.
        """
        pixels = min(dims["height"] * dims["width"], dims["places"]) // 4
        sampled = dims["channels"] * (pixels + dims["places"])
        return dims["batch"] * (8 * dims["places"] + 2 * sampled)

    def flops(self, dims: Dims) -> int:
        """Four products and additions for each sample."""
        return 8 * dims["batch"] * dims["channels"] * dims["places"]


PROBLEM = GridSample()
