"""Dropout with stated random numbers: Philox-4x32-10."""

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
from kernel_gym.tasks.shared.philox import philox_words
from kernel_gym.tasks.workload import Workload


class Dropout(Problem):
    """`out[e] = x[e] / (1 - p)` where `u[e] >= p`, else 0; elements are numbered row by row.

    `u[e] = (w >> 8) / 2^24`, where w is word `e % 4` of the Philox-4x32-10 block (Salmon et al., SC
    2011) with counter `(c lo, c hi, offset lo, offset hi)`, `c = e // 4`, and key `(seed lo, seed
    hi)`. lo and hi are halves of 32 bits.
    """

    name = "dropout"
    summary = "dropout with random numbers of Philox-4x32-10"
    category = "Random-and-layout"
    level = 3
    tags = ("decoder-llm", "vision", "training", "memory-bound", "generator")
    source = "residual streams of GPT-2, BERT-large and ViT-B in training"
    fair_reference = False

    args = (
        TensorArg("x", torch.float16, shape="rows, cols"),
        ScalarArg("p", float, values=(0.1, 0.5, 0.0, 0.8)),
        ScalarArg("seed", int),
        ScalarArg("offset", int),
    )
    outputs = (Output("out", torch.float16, shape="rows, cols"),)
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 1, 1 << 16))
    train = points(
        "rows cols",
        full=[(16384, 768), (16384, 1024), (4096, 4096), (8192, 3072), (25216, 768)],
        sim=[(100, 768), (64, 1024), (20, 4096), (24, 3072)],
    )
    production = points(
        "rows cols",
        full=[(8192, 1600), (16384, 1280), (4096, 6400)],
        sim=[(40, 1600), (50, 1280), (12, 6400)],
    )
    adversarial = ({"rows": 3, "cols": 5},)
    distributions = ("normal", "offset", "large", "structured")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x, a seed and an offset of 62 bits."""
        shape = (workload.dims["rows"], workload.dims["cols"])
        seed, offset = torch.randint(0, 1 << 62, (2,), generator=generator).tolist()
        return {
            "x": draw(shape, torch.float16, workload.distribution, generator),
            **self.scalars(workload),
            "seed": seed,
            "offset": offset,
        }

    def oracle(self, x: torch.Tensor, p: float, seed: int, offset: int) -> tuple[torch.Tensor, ...]:
        """All four words of each counter, dealt to the elements in order."""
        words = philox_words((x.numel() + 3) // 4, seed, offset, x.device)
        words = words[: x.numel()].reshape(x.shape)
        kept = (words >> 8).double() / (1 << 24) >= p
        return (x.double() / (1 - p) * kept,)

    def reference(
        self, x: torch.Tensor, p: float, seed: int, offset: int
    ) -> tuple[torch.Tensor, ...]:
        """Philox spelled in int64 operators, whose products wrap as 64 unsigned bits do."""
        mask = 0xFFFFFFFF
        element = torch.arange(x.numel(), dtype=torch.int64, device=x.device)
        counter = torch.div(element, 4, rounding_mode="floor")
        c0, c1 = counter & mask, counter >> 32
        c2, c3 = torch.full_like(counter, offset & mask), torch.full_like(counter, offset >> 32)
        k0, k1 = seed & mask, seed >> 32
        for _ in range(10):
            p0, p1 = c0 * 0xD2511F53, c2 * 0xCD9E8D57
            c0, c1 = ((p1 >> 32) & mask) ^ c1 ^ k0, p1 & mask
            c2, c3 = ((p0 >> 32) & mask) ^ c3 ^ k1, p0 & mask
            k0, k1 = (k0 + 0x9E3779B9) & mask, (k1 + 0xBB67AE85) & mask
        lane = element % 4
        word = torch.where(lane < 2, torch.where(lane == 0, c0, c1), torch.where(lane == 2, c2, c3))
        keep = ((word >> 8).float() * 2.0**-24 >= p).reshape(x.shape)
        return (torch.where(keep, x.float() / (1 - p), 0.0).half(),)

    def flops(self, dims: Dims) -> int:
        """A comparison and a product for each element; integer operations do not count."""
        return 2 * self.elements(dims)


PROBLEM = Dropout()
