"""Draws a token by the min-p rule, with the random numbers given."""

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
from kernel_gym.tasks.workload import Workload

SLACK = 1e-5


class MinPSampling(Problem):
    """Draws a token by inversion from those whose probability is at least `min_p` of the largest.

    Token j of row i weighs `w[j] = exp((logits[i, j] - max) / temperature)` and is kept if `w[j] >=
    min_p`. In the order of the vocabulary, the answer is the first kept token at which the sum of
    the kept weights exceeds `uniform[i]` times their total, or the last kept one.
    """

    name = "min_p_sampling"
    summary = "token of each row by the min-p rule and inversion at a given uniform number"
    category = "Random-and-layout"
    level = 4
    tags = ("decoder-llm", "memory-bound", "reduction", "sampling")
    source = "vocabularies of Llama-2, GPT-2, Llama-3 and Gemma; min-p of 0.02 to 0.3"
    domain = (
        "A logit may be -inf, which forbids its token; at least one logit of a row is finite, and "
        "none is NaN or +inf. uniform is at least 0 and below 1."
    )

    args = (
        TensorArg("logits", torch.float32, shape="rows, vocab"),
        TensorArg("uniform", torch.float32, shape="rows"),
        ScalarArg("temperature", float, values=(1.0, 0.6, 1.5)),
        ScalarArg("min_p", float, values=(0.05, 0.3, 0.02)),
    )
    outputs = (Output("token", torch.int32, check=Check.CUSTOM, shape="rows"),)
    axes = (Axis("rows", 1, 1 << 14), Axis("vocab", 1, 1 << 18))
    train = points(
        "rows vocab",
        full=[(512, 32000), (256, 50257), (128, 128256), (256, 32768)],
        sim=[(32, 2000), (16, 3141), (8, 8016), (48, 1024)],
    )
    production = points(
        "rows vocab",
        full=[(128, 151936), (64, 256000), (1024, 32064), (1, 128256)],
        sim=[(8, 4748), (4, 8000), (64, 1002), (1, 16032)],
    )
    adversarial = ({"rows": 3, "vocab": 1}, {"rows": 5, "vocab": 7})
    distributions = ("normal", "uniform", "heavy_tail", "structured")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws logits of which a tenth is -inf, and uniform numbers."""
        rows, vocab = workload.dims["rows"], workload.dims["vocab"]
        logits = draw((rows, vocab), torch.float32, workload.distribution, generator)
        barred = torch.rand((rows, vocab), generator=generator) < 0.1
        barred[:, vocab // 2] = False
        return {
            "logits": logits.masked_fill(barred, float("-inf")),
            "uniform": torch.rand(rows, generator=generator),
            **self.scalars(workload),
        }

    def oracle(
        self, logits: torch.Tensor, uniform: torch.Tensor, temperature: float, min_p: float
    ) -> tuple[torch.Tensor, ...]:
        """Row by row, in fp64."""
        tokens = []
        for row, point in zip(logits.double(), uniform.double(), strict=True):
            weight = torch.exp((row - row.max()) / temperature)
            kept = (weight >= min_p).nonzero()[:, 0]
            sums = weight[kept].cumsum(0)
            place = (sums <= point * sums[-1]).sum().clamp(max=len(kept) - 1)
            tokens.append(kept[place])
        return (torch.stack(tokens),)

    def reference(
        self, logits: torch.Tensor, uniform: torch.Tensor, temperature: float, min_p: float
    ) -> tuple[torch.Tensor, ...]:
        """Masked weights and their running sum, then a search in it."""
        weight = torch.exp((logits - logits.amax(dim=1, keepdim=True)) / temperature)
        weight = torch.where(weight >= min_p, weight, 0.0)
        sums = torch.cumsum(weight, dim=1)
        target = uniform[:, None] * sums[:, -1:]
        token = torch.searchsorted(sums, target, right=True)
        last = torch.searchsorted(sums, sums[:, -1:].contiguous())
        return (torch.minimum(token, last)[:, 0].to(torch.int32),)

    def mismatches(
        self, name: str, found: torch.Tensor, inputs: Mapping[str, Value], expected: torch.Tensor
    ) -> torch.Tensor:
        """Another token than the oracle's is right only if rounding can lead to it."""
        wrong = found.long() != expected.long()
        logits, uniform = inputs["logits"], inputs["uniform"]
        assert isinstance(logits, torch.Tensor)
        assert isinstance(uniform, torch.Tensor)
        temperature, min_p = inputs["temperature"], inputs["min_p"]
        for i in wrong.nonzero()[:, 0].tolist():
            row = logits[i].double()
            weight = torch.exp((row - row.max()) / float(temperature))
            wrong[i] = not _within_rounding(int(found[i]), weight, float(min_p), float(uniform[i]))
        return wrong

    def flops(self, dims: Dims) -> int:
        """One comparison for each logit."""
        return self.elements(dims)


def _within_rounding(token: int, weight: torch.Tensor, min_p: float, point: float) -> bool:
    """Whether the sums, a relative `SLACK` off, can make this the token of one row."""
    if not 0 <= token < len(weight) or weight[token] < min_p * (1 - SLACK):
        return False
    surely = torch.where(weight >= min_p * (1 + SLACK), weight, 0.0)
    maybe = torch.where(weight >= min_p * (1 - SLACK), weight, 0.0)
    slack = float(SLACK * maybe.sum() + (maybe - surely).sum())
    end = float(maybe[: token + 1].sum())
    return end - float(weight[token]) - slack <= point * float(maybe.sum()) <= end + slack


PROBLEM = MinPSampling()
