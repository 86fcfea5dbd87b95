"""Bilinear interpolation of planes to another size."""

from __future__ import annotations

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


class InterpolateBilinear(Problem):
    """Output pixel i of n samples the source at `(i + 0.5) side / n - 0.5`, clamped to the plane.

    The rule holds for rows and for columns; the four pixels around the place have bilinear weights.
    """

    name = "interpolate_bilinear"
    summary = "bilinear resize of each plane (align_corners=False, no antialias)"
    category = "Pooling"
    level = 3
    tags = ("vision", "diffusion", "memory-bound", "gather")
    source = (
        "decoders of DPT-Large and SegFormer-B0, logits of DeepLabv3+ on Cityscapes, FPN levels"
    )

    args = (
        TensorArg("x", torch.float16, shape="planes, height, width"),
        ScalarArg("to_height", int),
        ScalarArg("to_width", int),
    )
    outputs = (Output("out", torch.float16, shape="planes, to_height, to_width"),)
    axes = (
        Axis("planes", 1, 1 << 20),
        Axis("height", 1, 4096),
        Axis("width", 1, 4096),
        Axis("to_height", 1, 8192),
        Axis("to_width", 1, 8192),
    )
    train = points(
        "planes height width to_height to_width",
        full=[
            (2048, 96, 96, 192, 192),
            (19, 256, 512, 1024, 2048),
            (4096, 32, 32, 128, 128),
            (6144, 56, 56, 112, 112),
            (1200, 128, 128, 512, 512),
        ],
        sim=[
            (12, 48, 48, 96, 96),
            (1, 64, 128, 256, 512),
            (24, 16, 16, 64, 64),
            (16, 56, 56, 90, 70),
        ],
    )
    production = points(
        "planes height width to_height to_width",
        full=[(2048, 50, 84, 100, 168), (768, 224, 224, 384, 384), (3072, 64, 64, 128, 128)],
        sim=[(20, 50, 84, 75, 60), (2, 224, 224, 200, 200), (32, 24, 24, 64, 48)],
    )
    adversarial = ({"planes": 3, "height": 1, "width": 2, "to_height": 3, "to_width": 1},)
    distributions = ("normal", "offset", "structured", "heavy_tail")

    def elements(self, dims: Dims) -> int:
        """Elements of x and the output."""
        return dims["planes"] * (
            dims["height"] * dims["width"] + dims["to_height"] * dims["to_width"]
        )

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x float16[planes, height, width]."""
        shape = tuple(workload.dims[axis] for axis in ("planes", "height", "width"))
        return {
            "x": draw(shape, torch.float16, workload.distribution, generator),
            "to_height": workload.dims["to_height"],
            "to_width": workload.dims["to_width"],
        }

    def oracle(self, x: torch.Tensor, to_height: int, to_width: int) -> tuple[torch.Tensor, ...]:
        """Products with matrices of hat functions, from both sides."""

        def hats(side: int, count: int) -> torch.Tensor:
            i = torch.arange(count, dtype=torch.float64, device=x.device)[:, None]
            place = ((i + 0.5) * side / count - 0.5).clamp(0, side - 1)
            pixel = torch.arange(side, dtype=torch.float64, device=x.device)
            return (1 - (place - pixel).abs()).clamp(min=0)

        return (hats(x.shape[1], to_height) @ x.double() @ hats(x.shape[2], to_width).t(),)

    def reference(self, x: torch.Tensor, to_height: int, to_width: int) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        size = (to_height, to_width)
        return (F.interpolate(x[:, None], size, mode="bilinear", align_corners=False)[:, 0],)

    def bytes(self, dims: Dims) -> int:
        """Write out (2 bytes each), and read as many pixels as can be spared none of.

        A side that shrinks to less than half may skip pixels: at most two are read an output.
        """
        rows = min(dims["height"], dims["to_height"])
        cols = min(dims["width"], dims["to_width"])
        return 2 * dims["planes"] * (rows * cols + dims["to_height"] * dims["to_width"])

    def flops(self, dims: Dims) -> int:
        """Three blends of three operations an output."""
        return 9 * dims["planes"] * dims["to_height"] * dims["to_width"]


PROBLEM = InterpolateBilinear()
