"""Discrete Fourier transform of complex rows."""

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


class FftRows(Problem):
    """`out[i, k] = sum over n of x[i, n] * exp(-2 pi sqrt(-1) k n / size)` for each row i.

    The last axis holds real and imaginary parts. If `inverse` is 1, the sign in the exponent is
    plus and the result is divided by `size`, a power of two. Computed in float32.
    """

    name = "fft_rows"
    summary = (
        "complex-to-complex Fourier transform of each row, or its inverse; size is a power of 2"
    )
    category = "Math"
    level = 4
    tags = ("audio", "vision", "memory-bound")
    source = "long convolutions of Hyena and S4, Fourier layers of FNO, spectrograms of 512 points"

    args = (
        TensorArg("x", torch.float32, shape="rows, size, 2"),
        ScalarArg("inverse", int, values=(0, 1)),
    )
    outputs = (Output("out", torch.float32, shape="rows, size, 2"),)
    axes = (Axis("rows", 1, 1 << 20), Axis("size", 2, 1 << 12))
    train = points(
        "rows size",
        full=[(16384, 1024), (65536, 256), (4096, 4096), (32768, 512)],
        sim=[(32, 1024), (96, 256), (8, 4096), (64, 512)],
    )
    production = points(
        "rows size",
        full=[(8192, 2048), (200000, 64), (100000, 128), (30000, 512), (12288, 1024)],
        sim=[(16, 2048), (400, 64), (200, 128), (50, 512), (24, 1024)],
    )
    adversarial = ({"rows": 3, "size": 2}, {"rows": 5, "size": 8})
    distributions = ("normal", "uniform", "structured", "sparse")

    def legal(self, dims: Dims) -> bool:
        """On its axes, with a power of two as the size."""
        return super().legal(dims) and dims["size"] & (dims["size"] - 1) == 0

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x by the distribution, and the direction."""
        shape = (workload.dims["rows"], workload.dims["size"], 2)
        return {
            "x": draw(shape, torch.float32, workload.distribution, generator),
            **self.scalars(workload),
        }

    def oracle(self, x: torch.Tensor, inverse: int) -> tuple[torch.Tensor, ...]:
        """PyTorch's transform in fp64."""
        z = torch.view_as_complex(x.double().contiguous())
        return (torch.view_as_real((torch.fft.ifft if inverse else torch.fft.fft)(z)),)

    def reference(self, x: torch.Tensor, inverse: int) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        z = torch.view_as_complex(x)
        return (torch.view_as_real(torch.fft.ifft(z) if inverse else torch.fft.fft(z)),)

    def flops(self, dims: Dims) -> int:
        """Five operations for each element and bit of its index, half of the radix-2 count."""
        return 4 * dims["rows"] * dims["size"] * (dims["size"].bit_length() - 1)


PROBLEM = FftRows()
