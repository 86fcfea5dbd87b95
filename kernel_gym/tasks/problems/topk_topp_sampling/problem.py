"""Draws a token from the most likely ones, with the random numbers given."""

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
    TensorArg,
    Value,
    points,
)
from kernel_gym.tasks.workload import Workload

MOST = 64
SLACK = 1e-5


class TopkToppSampling(Problem):
    """Draws a token from the best tokens of a row by inversion at `uniform[i]`.

    1. Sort the tokens by their logits, largest first, of equals the lower index first, and keep the
    first `top_k[i]`. 2. Take the softmax over those. 3. Keep the first tokens up to and including
    the one at which the sum of shares reaches `top_p[i]`. 4. The answer is the first kept token at
    which the sum of shares exceeds `uniform[i]` times the sum of all kept shares.
    """

    name = "topk_topp_sampling"
    summary = "token of each row by top-k, then top-p, then inversion at a given uniform number"
    category = "Fusion"
    level = 5
    tags = ("decoder-llm", "memory-bound", "reduction", "sampling")
    source = "vocabularies of Llama-2, GPT-2, Llama-3 and Mistral; top-k up to 64 as in Gemma's 64"
    domain = (
        "All floating-point inputs are finite. Logits may be equal; top_k is at least 1, "
        "top_p above 0, uniform below 1."
    )

    args = (
        TensorArg("logits", torch.float32, shape="rows, vocab"),
        TensorArg("top_k", torch.int32, shape="rows"),
        TensorArg("top_p", torch.float32, shape="rows"),
        TensorArg("uniform", torch.float32, shape="rows"),
    )
    outputs = (Output("token", torch.int32, check=Check.CUSTOM, shape="rows"),)
    axes = (Axis("rows", 1, 1 << 14), Axis("vocab", 1, 1 << 18))
    train = points(
        "rows vocab",
        full=[(512, 32000), (256, 50257), (128, 128256), (256, 32768)],
        sim=[(32, 1000), (16, 1571), (8, 4008), (48, 512)],
    )
    production = points(
        "rows vocab",
        full=[(128, 151936), (64, 256000), (1024, 32064)],
        sim=[(8, 2374), (4, 4000), (32, 501)],
    )
    adversarial = ({"rows": 3, "vocab": 1}, {"rows": 2, "vocab": 7})
    distributions = ("normal", "uniform", "heavy_tail", "structured")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws logits, top_k from 1 to 64 (or vocab), top_p from 0.5 to 1, uniform numbers.

        In half of the rows many logits are equal.
        """
        rows, vocab = workload.dims["rows"], workload.dims["vocab"]
        most = min(MOST, vocab)
        logits = draw((rows, vocab), torch.float32, workload.distribution, generator)
        coarse = torch.rand(rows, 1, generator=generator) < 0.5
        return {
            "logits": torch.where(coarse, (logits * 8).round() / 8, logits),
            "top_k": torch.randint(1, most + 1, (rows,), generator=generator).int(),
            "top_p": 0.5 + 0.5 * torch.rand(rows, generator=generator),
            "uniform": torch.rand(rows, generator=generator),
        }

    def oracle(
        self,
        logits: torch.Tensor,
        top_k: torch.Tensor,
        top_p: torch.Tensor,
        uniform: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """Row by row, in fp64."""
        tokens = []
        for i, count in enumerate(top_k.tolist()):
            order = logits[i].double().argsort(descending=True, stable=True)[:count]
            sums = torch.softmax(logits[i].double()[order], dim=0).cumsum(0)
            kept = int((sums < top_p[i].double()).sum().clamp(max=count - 1)) + 1
            target = uniform[i].double() * sums[kept - 1]
            tokens.append(order[int((sums[:kept] <= target).sum().clamp(max=kept - 1))])
        return (torch.stack(tokens),)

    def reference(
        self,
        logits: torch.Tensor,
        top_k: torch.Tensor,
        top_p: torch.Tensor,
        uniform: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """A whole sort, then masks, as serving engines write it."""
        ordered, order = torch.sort(logits, dim=1, descending=True, stable=True)
        place = torch.arange(logits.shape[1], device=logits.device)
        ordered = ordered.masked_fill(place >= top_k[:, None], float("-inf"))
        shares = torch.softmax(ordered, dim=1)
        sums = torch.cumsum(shares, dim=1)
        last = (sums < top_p[:, None]).sum(dim=1, keepdim=True)
        last = torch.minimum(last, top_k[:, None].long() - 1)
        target = uniform[:, None] * torch.gather(sums, 1, last)
        chosen = torch.minimum((sums <= target).sum(dim=1, keepdim=True), last)
        return (torch.gather(order, 1, chosen)[:, 0].to(torch.int32),)

    def mismatches(
        self, name: str, found: torch.Tensor, inputs: Mapping[str, Value], expected: torch.Tensor
    ) -> torch.Tensor:
        """Another token than the oracle's is right only if rounding of a sum can lead to it."""
        wrong = found.long() != expected.long()
        for i in wrong.nonzero()[:, 0].tolist():
            row = {k: v[i].double() for k, v in inputs.items() if isinstance(v, torch.Tensor)}
            wrong[i] = not _within_rounding(int(found[i]), **row)
        return wrong

    def flops(self, dims: Dims) -> int:
        """One comparison for each logit."""
        return self.elements(dims)


def _within_rounding(
    token: int,
    logits: torch.Tensor,
    top_k: torch.Tensor,
    top_p: torch.Tensor,
    uniform: torch.Tensor,
) -> bool:
    """Whether a shift of the sums by `SLACK` makes this the token of one row."""
    order = logits.argsort(descending=True, stable=True)[: int(top_k)]
    place = (order == token).nonzero()
    if not len(place):
        return False
    at = int(place[0])
    sums = torch.softmax(logits[order], dim=0).cumsum(0)
    before = sums - torch.softmax(logits[order], dim=0)
    low, high = float(before[at]) - SLACK, float(sums[at]) + SLACK
    ends = sums[(sums >= top_p - SLACK) & (before < top_p + SLACK)]
    totals = ends.tolist() or [float(sums[-1])]
    return any(low <= float(uniform) * total <= high and low <= total for total in totals)


PROBLEM = TopkToppSampling()
