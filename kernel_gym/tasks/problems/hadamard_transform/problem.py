"""Walsh-Hadamard transform of rows, as rotations before quantisation need it."""

from __future__ import annotations

import torch

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


class HadamardTransform(Problem):
    """`out[i] = scale * H x[i]` with `H[a, b] = (-1)^(number of bits that are set in a and in b)`.

    The order is that of Sylvester's construction; `cols` is a power of two.
    """

    name = "hadamard_transform"
    summary = "scaled Walsh-Hadamard transform of each row, in the order of Sylvester's matrices"
    category = "Math"
    level = 3
    tags = ("decoder-llm", "memory-bound")
    source = "rotations of QuaRot and FlashAttention-3 by head (64, 128) and by hidden size (4096)"

    args = (
        TensorArg("x", torch.float16, shape="rows, cols"),
        ScalarArg("scale", float, values=(0.015625, 0.0884, 0.125)),
    )
    outputs = (Output("out", torch.float16, shape="rows, cols"),)
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 1, 1 << 14))
    train = points(
        "rows cols",
        full=[(8192, 4096), (262144, 128), (4096, 8192), (131072, 64)],
        sim=[(32, 4096), (512, 128), (16, 8192), (1024, 64)],
    )
    production = points(
        "rows cols",
        full=[(16384, 2048), (1024, 16384), (500000, 32), (65536, 256), (32768, 512)],
        sim=[(64, 2048), (8, 16384), (1500, 32), (256, 256), (130, 512)],
    )
    adversarial = ({"rows": 3, "cols": 1}, {"rows": 5, "cols": 8})
    distributions = ("normal", "uniform", "sparse", "structured")

    def legal(self, dims: Dims) -> bool:
        """On its axes, with a power of two as the number of columns."""
        return super().legal(dims) and dims["cols"] & (dims["cols"] - 1) == 0

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x by the distribution; scale is the root of one over the columns, or near it."""
        rows, cols = workload.dims["rows"], workload.dims["cols"]
        return {
            "x": draw((rows, cols), torch.float16, workload.distribution, generator),
            **self.scalars(workload),
        }

    def oracle(self, x: torch.Tensor, scale: float) -> tuple[torch.Tensor, ...]:
        """Sums and differences of halves, in fp64."""
        rows, cols = x.shape
        y, half = x.double(), 1
        while half < cols:
            pairs = y.reshape(rows, -1, 2, half)
            y = torch.stack((pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]), 2)
            half *= 2
        return (y.reshape(rows, cols) * scale,)

    def reference(self, x: torch.Tensor, scale: float) -> tuple[torch.Tensor, ...]:
        """The same in float32, an operator a step, rounded once."""
        rows, cols = x.shape
        y, half = x.float(), 1
        while half < cols:
            low, high = y.view(rows, -1, 2, half).unbind(2)
            y = torch.stack((low + high, low - high), dim=2)
            half *= 2
        return ((y.view(rows, cols) * scale).half(),)

    def flops(self, dims: Dims) -> int:
        """An addition for each element and bit of its index, and the scale."""
        return self.elements(dims) * dims["cols"].bit_length()


PROBLEM = HadamardTransform()
