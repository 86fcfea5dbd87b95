"""Gradient of max pooling."""

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

_SPAN = "+ 2 * (window // 2) - window) // stride + 1"
_POOLED = f"batch, channels, (height {_SPAN}, (width {_SPAN}"


class MaxPool2dBackward(Problem):
    """`dx[b, c, p] = sum of grad[b, c, o] over all outputs o with index[b, c, o] = p`.

    `index` holds the place `row * width + column` of each maximum in its plane, as the forward pass
    of a `window` x `window` pooling with `stride`, padding `window // 2` and floor division returns
    it. Windows overlap, so that a pixel may be the maximum of several. Sums are accumulated in
    float32 and rounded once.
    """

    name = "max_pool2d_backward"
    summary = "gradient of 2-D max pooling from the indices that the forward pass kept"
    category = "Pooling"
    level = 3
    tags = ("vision", "training", "memory-bound", "scatter", "backward")
    source = "stems of ResNet-50 and DenseNet-121, cells of Inception-v3 (windows of 3 and 5)"

    args = (
        TensorArg("grad", torch.float16, shape=_POOLED),
        TensorArg("index", torch.int64, shape=_POOLED),
        ScalarArg("height", int),
        ScalarArg("width", int),
        ScalarArg("window", int),
        ScalarArg("stride", int),
    )
    outputs = (Output("dx", torch.float16, shape="batch, channels, height, width"),)
    axes = (
        Axis("batch", 1, 1024),
        Axis("channels", 1, 4096),
        Axis("height", 1, 512),
        Axis("width", 1, 512),
        Axis("window", 2, 7),
        Axis("stride", 1, 4),
    )
    train = points(
        "batch channels height width window stride",
        full=[
            (64, 64, 112, 112, 3, 2),
            (128, 192, 28, 28, 3, 1),
            (32, 256, 35, 35, 5, 2),
            (256, 64, 56, 56, 2, 2),
        ],
        sim=[
            (2, 16, 28, 28, 3, 2),
            (2, 12, 20, 20, 3, 1),
            (1, 24, 17, 35, 5, 2),
            (4, 8, 28, 28, 2, 2),
        ],
    )
    production = points(
        "batch channels height width window stride",
        full=[
            (16, 64, 256, 256, 3, 2),
            (64, 480, 28, 28, 3, 1),
            (32, 128, 112, 112, 7, 4),
            (128, 768, 17, 17, 3, 2),
        ],
        sim=[
            (1, 8, 48, 48, 3, 2),
            (1, 48, 14, 14, 3, 1),
            (1, 12, 40, 40, 7, 4),
            (2, 40, 17, 17, 3, 2),
        ],
    )
    adversarial = (
        {"batch": 1, "channels": 27, "height": 3, "width": 5, "window": 3, "stride": 1},
        {"batch": 2, "channels": 1, "height": 1, "width": 7, "window": 2, "stride": 3},
    )
    distributions = ("normal", "uniform", "structured", "sparse")

    def elements(self, dims: Dims) -> int:
        """Pixels of the input."""
        return dims["batch"] * dims["channels"] * dims["height"] * dims["width"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws an image by the distribution, pools it for the indices, and normal gradients."""
        *shape, window, stride = (workload.dims[axis.name] for axis in self.axes)
        x = draw(tuple(shape), torch.float32, workload.distribution, generator)
        _, index = F.max_pool2d(x, window, stride, window // 2, return_indices=True)
        return {
            "grad": torch.randn(index.shape, generator=generator).half(),
            "index": index,
            "height": shape[2],
            "width": shape[3],
            "window": window,
            "stride": stride,
        }

    def oracle(
        self,
        grad: torch.Tensor,
        index: torch.Tensor,
        height: int,
        width: int,
        window: int,
        stride: int,
    ) -> tuple[torch.Tensor, ...]:
        """A scatter in fp64."""
        planes = grad.shape[0] * grad.shape[1]
        dx = torch.zeros(planes, height * width, dtype=torch.float64, device=grad.device)
        dx.scatter_add_(1, index.reshape(planes, -1), grad.double().reshape(planes, -1))
        return (dx.view(*grad.shape[:2], height, width),)

    def reference(
        self,
        grad: torch.Tensor,
        index: torch.Tensor,
        height: int,
        width: int,
        window: int,
        stride: int,
    ) -> tuple[torch.Tensor, ...]:
        """A scatter in float32, rounded once."""
        planes = grad.shape[0] * grad.shape[1]
        dx = torch.zeros(planes, height * width, device=grad.device)
        dx.scatter_add_(1, index.view(planes, -1), grad.float().view(planes, -1))
        return (dx.half().view(grad.shape[0], grad.shape[1], height, width),)

    def flops(self, dims: Dims) -> int:
        """An addition for each output of the forward pass."""
        pad, window, stride = dims["window"] // 2, dims["window"], dims["stride"]
        rows, cols = ((dims[axis] + 2 * pad - window) // stride + 1 for axis in ("height", "width"))
        return dims["batch"] * dims["channels"] * rows * cols


PROBLEM = MaxPool2dBackward()
