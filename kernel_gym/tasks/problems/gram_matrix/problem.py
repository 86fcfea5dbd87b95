"""Gram matrices of feature maps."""

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


class GramMatrix(Problem):
    """`out[b] = x[b] @ x[b]^T / positions`: a symmetric product whose halves are equal.

    Sums of hundreds of thousands of positive terms must stay within the rounding of float16.
    """

    name = "gram_matrix"
    summary = "x @ x.T / positions for each feature map of a batch, float16"
    category = "LinearAlgebra"
    level = 3
    tags = ("vision", "diffusion", "training", "compute-bound")
    source = "style losses over VGG-19 features at 256 and 512 pixels; Muon on GPT-2 matrices"

    args = (TensorArg("x", torch.float16, shape="batch, channels, positions"),)
    outputs = (Output("out", torch.float16, shape="batch, channels, channels"),)
    axes = (
        Axis("batch", 1, 1024),
        Axis("channels", 1, 1 << 13),
        Axis("positions", 1, 1 << 20),
    )
    train = points(
        "batch channels positions",
        full=[(8, 256, 16384), (16, 512, 4096), (8, 128, 65536), (1, 768, 3072)],
        sim=[(2, 128, 512), (4, 96, 256), (2, 64, 1024), (1, 192, 384)],
    )
    production = points(
        "batch channels positions",
        full=[(16, 512, 1024), (4, 64, 262144), (1, 1600, 6400)],
        sim=[(4, 128, 128), (1, 64, 2048), (1, 200, 400)],
    )
    adversarial = ({"batch": 2, "channels": 3, "positions": 1},)
    distributions = ("normal", "offset", "sparse", "structured")

    def elements(self, dims: Dims) -> int:
        """Multiply-adds of the whole square."""
        return dims["batch"] * dims["channels"] ** 2 * dims["positions"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x float16[batch, channels, positions]."""
        shape = tuple(workload.dims[axis.name] for axis in self.axes)
        return {"x": draw(shape, torch.float16, workload.distribution, generator)}

    def oracle(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        wide = x.double()
        return (wide @ wide.mT / x.shape[2],)

    def reference(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One product, whose float32 sum is scaled before it is rounded."""
        zero = torch.zeros((), dtype=x.dtype, device=x.device).expand(x.shape[0], 1, 1)
        return (torch.baddbmm(zero, x, x.mT, beta=0, alpha=1 / x.shape[2]),)

    def flops(self, dims: Dims) -> int:
        """A product and an addition for each multiply-add of one triangle."""
        batch, channels, positions = (dims[axis.name] for axis in self.axes)
        return batch * channels * (channels + 1) * positions


PROBLEM = GramMatrix()
