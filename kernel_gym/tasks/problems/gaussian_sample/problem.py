"""A sample of independent normal distributions, drawn from a stated generator."""

from __future__ import annotations

import math

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
from kernel_gym.tasks.shared.philox import philox_words
from kernel_gym.tasks.workload import Workload


class GaussianSample(Problem):
    """`out[e] = mean[e] + exp(logvar[e] / 2) z[e]`, with z by Box and Muller.

    Elements are numbered row by row. `z = r cos(a)` where e is even and `r sin(a)` where it is odd,
    with `r = sqrt(-2 ln(((u >> 8) + 1) / 2^24))` and `a = 2 pi (v >> 8) / 2^24`. (u, v) are the
    words (0, 1) where `e % 4 < 2`, else (2, 3), of the Philox-4x32-10 block with counter `(c lo, c
    hi, offset lo, offset hi)`, `c = e // 4`, and key `(seed lo, seed hi)`. lo and hi are halves of
    32 bits.
    """

    name = "gaussian_sample"
    summary = "sample of a normal distribution by mean and log variance, with Philox"
    category = "Random-and-layout"
    level = 3
    tags = ("diffusion", "vision", "generator")
    source = "latents of the autoencoders of Stable Diffusion 1.5, SDXL and SD3-medium"
    fair_reference = False

    args = (
        TensorArg("mean", torch.float16, shape="rows, cols"),
        TensorArg("logvar", torch.float16, shape="rows, cols"),
        ScalarArg("seed", int),
        ScalarArg("offset", int),
    )
    outputs = (Output("out", torch.float16, shape="rows, cols"),)
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 1, 1 << 20))
    train = points(
        "rows cols",
        full=[(256, 16384), (64, 65536), (32, 262144), (512, 16384), (1024, 4096)],
        sim=[(8, 4096), (2, 16384), (32, 1024), (4, 9216)],
    )
    production = points(
        "rows cols",
        full=[(128, 36864), (16, 147456), (128, 65536)],
        sim=[(4, 6400), (1, 36864), (64, 512)],
    )
    adversarial = ({"rows": 3, "cols": 5},)
    distributions = ("normal", "uniform", "offset", "structured")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws mean by the distribution, logvar within -4 and 2, seed and offset of 62 bits."""
        shape = (workload.dims["rows"], workload.dims["cols"])
        seed, offset = torch.randint(0, 1 << 62, (2,), generator=generator).tolist()
        return {
            "mean": draw(shape, torch.float16, workload.distribution, generator),
            "logvar": (6 * torch.rand(shape, generator=generator) - 4).half(),
            "seed": seed,
            "offset": offset,
        }

    def oracle(
        self, mean: torch.Tensor, logvar: torch.Tensor, seed: int, offset: int
    ) -> tuple[torch.Tensor, ...]:
        """Pair by pair, in fp64."""
        count = mean.numel()
        pairs = philox_words((count + 3) // 4, seed, offset, mean.device).view(-1, 2) >> 8
        radius = (-2 * ((pairs[:, 0] + 1).double() / (1 << 24)).log()).sqrt()
        angle = 2 * math.pi * pairs[:, 1].double() / (1 << 24)
        z = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1).reshape(-1)
        z = z[:count].reshape(mean.shape)
        return (mean.double() + (logvar.double() / 2).exp() * z,)

    def reference(
        self, mean: torch.Tensor, logvar: torch.Tensor, seed: int, offset: int
    ) -> tuple[torch.Tensor, ...]:
        """Philox spelled in int64 operators, whose products wrap as 64 unsigned bits do."""
        mask = 0xFFFFFFFF
        element = torch.arange(mean.numel(), dtype=torch.int64, device=mean.device)
        counter = torch.div(element, 4, rounding_mode="floor")
        c0, c1 = counter & mask, counter >> 32
        c2, c3 = torch.full_like(counter, offset & mask), torch.full_like(counter, offset >> 32)
        k0, k1 = seed & mask, seed >> 32
        for _ in range(10):
            p0, p1 = c0 * 0xD2511F53, c2 * 0xCD9E8D57
            c0, c1 = ((p1 >> 32) & mask) ^ c1 ^ k0, p1 & mask
            c2, c3 = ((p0 >> 32) & mask) ^ c3 ^ k1, p0 & mask
            k0, k1 = (k0 + 0x9E3779B9) & mask, (k1 + 0xBB67AE85) & mask
        first = element % 4 < 2
        u = ((torch.where(first, c0, c2) >> 8) + 1).float() * 2.0**-24
        v = (torch.where(first, c1, c3) >> 8).float() * 2.0**-24
        angle = v * 6.283185307179586
        turn = torch.where(element % 2 == 0, torch.cos(angle), torch.sin(angle))
        z = (torch.sqrt(-2 * torch.log(u)) * turn).reshape(mean.shape)
        return ((mean.float() + torch.exp(logvar.float() / 2) * z).half(),)

    def flops(self, dims: Dims) -> int:
        """Half a logarithm and half a root, a wave, an exponential, and six more an element."""
        return 9 * self.elements(dims)


PROBLEM = GaussianSample()
