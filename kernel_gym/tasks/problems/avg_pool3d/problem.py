"""Average pooling of volumes."""

from __future__ import annotations

import math

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

_SIDES = ", ".join(f"({side} - window) // stride + 1" for side in ("depth", "height", "width"))


class AvgPool3d(Problem):
    """Means of the cubes of `window`^3 voxels at every `stride`-th voxel of each axis.

    There is no padding. Voxels that no cube covers are not used. The sum is accumulated in float32
    and rounded once, after the division by `window`^3.
    """

    name = "avg_pool3d"
    summary = "3-D average pooling with a cubic window and a stride, no padding"
    category = "Pooling"
    level = 2
    tags = ("vision", "memory-bound")
    source = (
        "volumes of 3D U-Net (BraTS, 128^3), clips of I3D and SlowFast, nnU-Net deep supervision"
    )

    args = (
        TensorArg("x", torch.float16, shape="batch, channels, depth, height, width"),
        ScalarArg("window", int),
        ScalarArg("stride", int),
    )
    outputs = (Output("out", torch.float16, shape=f"batch, channels, {_SIDES}"),)
    axes = (
        Axis("batch", 1, 256),
        Axis("channels", 1, 2048),
        Axis("depth", 1, 256),
        Axis("height", 1, 256),
        Axis("width", 1, 256),
        Axis("window", 1, 5),
        Axis("stride", 1, 4),
    )
    train = points(
        "batch channels depth height width window stride",
        full=[
            (2, 32, 128, 128, 128, 2, 2),
            (8, 64, 16, 112, 112, 3, 2),
            (4, 256, 8, 28, 28, 3, 1),
            (1, 16, 160, 192, 160, 4, 4),
        ],
        sim=[
            (1, 4, 32, 32, 32, 2, 2),
            (2, 4, 8, 28, 28, 3, 2),
            (1, 16, 6, 14, 14, 3, 1),
            (1, 2, 40, 24, 40, 4, 4),
        ],
    )
    production = points(
        "batch channels depth height width window stride",
        full=[
            (1, 64, 96, 96, 96, 2, 2),
            (16, 32, 8, 56, 56, 2, 1),
            (2, 128, 64, 64, 64, 3, 2),
            (4, 1, 155, 240, 240, 5, 3),
        ],
        sim=[
            (1, 8, 24, 24, 24, 2, 2),
            (4, 4, 6, 20, 20, 2, 1),
            (1, 8, 16, 24, 24, 3, 2),
            (1, 1, 31, 48, 48, 5, 3),
        ],
    )
    adversarial = (
        {"batch": 1, "channels": 2, "depth": 1, "height": 2, "width": 3, "window": 1, "stride": 2},
        {"batch": 2, "channels": 1, "depth": 5, "height": 4, "width": 7, "window": 3, "stride": 2},
    )
    distributions = ("normal", "offset", "sparse", "structured")

    def legal(self, dims: Dims) -> bool:
        """On its axes, with a window that fits."""
        sides = (dims["depth"], dims["height"], dims["width"])
        return super().legal(dims) and dims["window"] <= min(sides)

    def elements(self, dims: Dims) -> int:
        """Voxels, times the voxels of a window."""
        shape = (dims[axis.name] for axis in self.axes[:5])
        return math.prod(shape) * dims["window"] ** 3

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x by the distribution."""
        *shape, window, stride = (workload.dims[axis.name] for axis in self.axes)
        x = draw(tuple(shape), torch.float16, workload.distribution, generator)
        return {"x": x, "window": window, "stride": stride}

    def oracle(self, x: torch.Tensor, window: int, stride: int) -> tuple[torch.Tensor, ...]:
        """Means of all windows, in fp64."""
        view = x.double()
        for axis in (2, 3, 4):
            view = view.unfold(axis, window, stride)
        return (view.mean((5, 6, 7)),)

    def reference(self, x: torch.Tensor, window: int, stride: int) -> tuple[torch.Tensor, ...]:
        """One PyTorch call; it adds up in float32 on a GPU."""
        return (F.avg_pool3d(x.float(), window, stride).half(),)

    def bytes(self, dims: Dims) -> int:
        """Reads the voxels of at least one window for each output of stride 1; writes outputs."""
        sides = [dims[axis] for axis in ("depth", "height", "width")]
        window, stride = dims["window"], dims["stride"]
        counts = [(side - window) // stride + 1 for side in sides]
        used = [min((n - 1) * stride + window, n * window) for n in counts]
        return 2 * dims["batch"] * dims["channels"] * (math.prod(used) + math.prod(counts))

    def flops(self, dims: Dims) -> int:
        """One addition or division for each output, the least that any window needs."""
        sides = (dims[axis] for axis in ("depth", "height", "width"))
        counts = ((side - dims["window"]) // dims["stride"] + 1 for side in sides)
        return dims["batch"] * dims["channels"] * math.prod(counts)


PROBLEM = AvgPool3d()
