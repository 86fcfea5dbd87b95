"""Stochastic rounding of float32 to bfloat16, by a stated generator."""

from __future__ import annotations

import torch

from kernel_gym.tasks.distributions import draw
from kernel_gym.tasks.problem import (
    Axis,
    Check,
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


class StochasticRound(Problem):
    """`out[e]` has the bits `(bits(x[e]) + h[e]) >> 16`, where h are random numbers of 16 bits.

    bits(x) are those of the float32 as an unsigned number; elements are numbered row by row. h[e]
    are the lower 16 bits of `w >> (16 * (e % 2))`, where w is word `(e % 8) // 2` of the
    Philox-4x32-10 block with counter `(c lo, c hi, offset lo, offset hi)`, `c = e // 8`, and key
    `(seed lo, seed hi)`. lo and hi are halves of 32 bits.
    """

    name = "stochastic_round"
    summary = "float32 to bfloat16 with stochastic rounding by Philox"
    category = "Random-and-layout"
    level = 3
    tags = ("decoder-llm", "recommender", "training", "memory-bound", "generator")
    source = "float32 updates to bfloat16 weights of Llama-3.2-1B, GPT-2 and DLRM tables"
    fair_reference = False

    args = (
        TensorArg("x", torch.float32, shape="rows, cols"),
        ScalarArg("seed", int),
        ScalarArg("offset", int),
    )
    outputs = (Output("out", torch.bfloat16, check=Check.EXACT, shape="rows, cols"),)
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 1, 1 << 17))
    train = points(
        "rows cols",
        full=[(2048, 8192), (8192, 2048), (50257, 768), (3072, 768), (262144, 128)],
        sim=[(16, 4096), (32, 2048), (96, 768), (512, 128)],
    )
    production = points(
        "rows cols",
        full=[(4096, 4096), (6400, 1600), (32000, 1024)],
        sim=[(12, 4096), (40, 1600), (64, 1024)],
    )
    adversarial = ({"rows": 3, "cols": 5},)
    distributions = ("normal", "tiny", "large", "heavy_tail")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x by the distribution, seed and offset of 62 bits."""
        shape = (workload.dims["rows"], workload.dims["cols"])
        seed, offset = torch.randint(0, 1 << 62, (2,), generator=generator).tolist()
        return {
            "x": draw(shape, torch.float32, workload.distribution, generator),
            "seed": seed,
            "offset": offset,
        }

    def oracle(self, x: torch.Tensor, seed: int, offset: int) -> tuple[torch.Tensor, ...]:
        """Up where the bits below the lower neighbour and the random ones overflow 16 bits."""
        count = x.numel()
        words = philox_words((count + 7) // 8, seed, offset, x.device)
        halves = torch.stack([words & 0xFFFF, words >> 16], dim=1).reshape(-1)[:count]
        bits = x.float().contiguous().view(torch.int32)
        lower = (bits & -0x10000).view(torch.float32)
        upper = ((bits & -0x10000) + 0x10000).view(torch.float32)
        up = (bits & 0xFFFF) + halves.reshape(x.shape) >= 1 << 16
        return (torch.where(up, upper, lower).double(),)

    def reference(self, x: torch.Tensor, seed: int, offset: int) -> tuple[torch.Tensor, ...]:
        """Philox spelled in int64 operators, whose products wrap as 64 unsigned bits do."""
        mask = 0xFFFFFFFF
        element = torch.arange(x.numel(), dtype=torch.int64, device=x.device)
        counter = torch.div(element, 8, rounding_mode="floor")
        c0, c1 = counter & mask, counter >> 32
        c2, c3 = torch.full_like(counter, offset & mask), torch.full_like(counter, offset >> 32)
        k0, k1 = seed & mask, seed >> 32
        for _ in range(10):
            p0, p1 = c0 * 0xD2511F53, c2 * 0xCD9E8D57
            c0, c1 = ((p1 >> 32) & mask) ^ c1 ^ k0, p1 & mask
            c2, c3 = ((p0 >> 32) & mask) ^ c3 ^ k1, p0 & mask
            k0, k1 = (k0 + 0x9E3779B9) & mask, (k1 + 0xBB67AE85) & mask
        lane = element % 8
        word = torch.where(lane < 4, torch.where(lane < 2, c0, c1), torch.where(lane < 6, c2, c3))
        half = (word >> (16 * (element % 2))) & 0xFFFF
        bits = x.contiguous().view(torch.int32).to(torch.int64) + half.reshape(x.shape)
        return ((bits >> 16).to(torch.int16).view(torch.bfloat16),)

    def flops(self, dims: Dims) -> int:
        """None: integer operations do not count."""
        return 0


PROBLEM = StochasticRound()
