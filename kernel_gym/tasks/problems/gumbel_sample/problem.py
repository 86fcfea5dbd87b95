"""Draws a token by the Gumbel maximum, from a stated generator."""

from __future__ import annotations

from collections.abc import Mapping

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

SLACK = 1e-3


class GumbelSample(Problem):
    """`token[i]` is the column with the largest `logits[i, j] / temperature - log(-log(u[i, j]))`.

    `u = ((word >> 9) + 0.5) / 2^23`. The word of element `e = i * vocab + j` is word `e % 4` of the
    Philox-4x32-10 block with counter (c lo, c hi, offset lo, offset hi), `c = e // 4`, and key
    (seed lo, seed hi), halves of 32 bits. Scores within 1e-3 of the largest count as equal.
    """

    name = "gumbel_sample"
    summary = "token of each row by the Gumbel maximum, with Philox random numbers"
    category = "Random-and-layout"
    level = 4
    tags = ("decoder-llm", "generator", "reduction", "sampling")
    source = "vocabularies of Llama-2, GPT-2, Llama-3 and Gemma-2, as JAX and vLLM sample"
    domain = (
        "A logit may be -inf, which forbids its token; at least one logit of a row is finite, and "
        "none is NaN or +inf."
    )
    fair_reference = False

    args = (
        TensorArg("logits", torch.float32, shape="rows, vocab"),
        ScalarArg("temperature", float, values=(1.0, 0.7, 1.5)),
        ScalarArg("seed", int),
        ScalarArg("offset", int),
    )
    outputs = (Output("token", torch.int32, check=Check.CUSTOM, shape="rows"),)
    axes = (Axis("rows", 1, 1 << 14), Axis("vocab", 1, 1 << 18))
    train = points(
        "rows vocab",
        full=[(512, 32000), (256, 50257), (128, 128256), (256, 32768)],
        sim=[(24, 1000), (16, 1571), (6, 4008), (48, 512)],
    )
    production = points(
        "rows vocab",
        full=[(128, 151936), (64, 256000), (1024, 32064), (1, 128256)],
        sim=[(8, 2374), (4, 4000), (32, 501), (1, 8016)],
    )
    adversarial = ({"rows": 3, "vocab": 1}, {"rows": 9, "vocab": 7})
    distributions = ("normal", "uniform", "heavy_tail", "structured")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws logits of which a tenth is -inf, seed and offset of 62 bits."""
        rows, vocab = workload.dims["rows"], workload.dims["vocab"]
        logits = draw((rows, vocab), torch.float32, workload.distribution, generator)
        barred = torch.rand((rows, vocab), generator=generator) < 0.1
        barred[:, vocab // 2] = False
        seed, offset = torch.randint(0, 1 << 62, (2,), generator=generator).tolist()
        return {
            "logits": logits.masked_fill(barred, float("-inf")),
            **self.scalars(workload),
            "seed": seed,
            "offset": offset,
        }

    def oracle(
        self, logits: torch.Tensor, temperature: float, seed: int, offset: int
    ) -> tuple[torch.Tensor, ...]:
        """The scores in fp64, then the largest of each row."""
        return (_scores(logits, temperature, seed, offset).argmax(1),)

    def reference(
        self, logits: torch.Tensor, temperature: float, seed: int, offset: int
    ) -> tuple[torch.Tensor, ...]:
        """Philox spelled in int64 operators, whose products wrap as 64 unsigned bits do."""
        mask = 0xFFFFFFFF
        element = torch.arange(logits.numel(), dtype=torch.int64, device=logits.device)
        counter = torch.div(element, 4, rounding_mode="floor")
        c0, c1 = counter & mask, counter >> 32
        c2, c3 = torch.full_like(counter, offset & mask), torch.full_like(counter, offset >> 32)
        k0, k1 = seed & mask, seed >> 32
        for _ in range(10):
            p0, p1 = c0 * 0xD2511F53, c2 * 0xCD9E8D57
            c0, c1 = ((p1 >> 32) & mask) ^ c1 ^ k0, p1 & mask
            c2, c3 = ((p0 >> 32) & mask) ^ c3 ^ k1, p0 & mask
            k0, k1 = (k0 + 0x9E3779B9) & mask, (k1 + 0xBB67AE85) & mask
        place = element % 4
        word = torch.where(
            place < 2, torch.where(place == 0, c0, c1), torch.where(place == 2, c2, c3)
        )
        u = ((word >> 9).float() + 0.5) * 2.0**-23
        noise = -torch.log(-torch.log(u)).view(logits.shape)
        return (torch.argmax(logits / temperature + noise, dim=1).to(torch.int32),)

    def mismatches(
        self, name: str, found: torch.Tensor, inputs: Mapping[str, Value], expected: torch.Tensor
    ) -> torch.Tensor:
        """The token must have the largest score, but for `SLACK`."""
        scores = _scores(**inputs)  # type: ignore[arg-type]
        inside = (found >= 0) & (found < scores.shape[1])
        at = torch.where(inside, found, 0).long()[:, None]
        return ~inside | (scores.gather(1, at)[:, 0] < scores.amax(1) - SLACK)

    def flops(self, dims: Dims) -> int:
        """Two logarithms, a quotient, an addition and a comparison for each logit."""
        return 5 * self.elements(dims)


def _scores(logits: torch.Tensor, temperature: float, seed: int, offset: int) -> torch.Tensor:
    """Returns the scores of all columns in fp64."""
    words = philox_words((logits.numel() + 3) // 4, seed, offset, logits.device)
    u = ((words[: logits.numel()] >> 9).double() + 0.5) / (1 << 23)
    return logits.double() / temperature - (-u.log()).log().view(logits.shape)


PROBLEM = GumbelSample()
