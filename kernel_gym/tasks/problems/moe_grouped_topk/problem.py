"""Routing limited to groups of experts, as DeepSeek-V3 does it."""

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
from kernel_gym.tasks.workload import Workload

STEPS = 4096
"""Scores and biases are whole numbers of such parts of one, so that float32 sums are exact."""


class MoeGroupedTopk(Problem):
    """The `top_k` best experts of each token, from its `keep` best groups, and their weights.

    Experts are ranked by `score + bias`. A group is a run of consecutive experts; its rank is the
    sum of its two largest `score + bias`. The weight of a chosen expert is `factor * score`,
    divided by the sum of the chosen scores (without bias). Of equal ones the lower number is
    chosen.
    """

    name = "moe_grouped_topk"
    summary = "grouped top-k routing of experts with a bias, as in DeepSeek-V3"
    category = "Index"
    level = 4
    tags = ("moe", "decoder-llm", "memory-bound", "reduction")
    source = "routers of DeepSeek-V3 (256 experts in 8 groups, 4 kept, 8 chosen) and its relatives"

    domain = (
        "All inputs are finite. Scores and biases are whole multiples of 1/4096, so that float32 "
        "sums of them are exact."
    )

    args = (
        TensorArg("score", torch.float32, shape="tokens, groups * size"),
        TensorArg("bias", torch.float32, shape="groups * size"),
        ScalarArg("groups", int),
        ScalarArg("keep", int),
        ScalarArg("top_k", int),
        ScalarArg("factor", float, values=(2.5, 1.0, 16.0)),
    )
    outputs = (
        Output("weight", torch.float32, shape="tokens, top_k"),
        Output("expert", torch.int32, check=Check.EXACT, shape="tokens, top_k"),
    )
    axes = (
        Axis("tokens", 1, 1 << 20),
        Axis("groups", 1, 16),
        Axis("size", 2, 64),
        Axis("keep", 1, 8),
        Axis("top_k", 1, 8),
    )
    train = points(
        "tokens groups size keep top_k",
        full=[
            (65536, 8, 32, 4, 8),
            (131072, 8, 20, 3, 6),
            (131072, 8, 16, 2, 4),
            (65536, 4, 64, 2, 8),
        ],
        sim=[(128, 8, 32, 4, 8), (192, 8, 20, 3, 6), (256, 8, 16, 2, 4), (96, 4, 64, 2, 8)],
    )
    production = points(
        "tokens groups size keep top_k",
        full=[(32768, 16, 16, 4, 8), (131072, 8, 8, 3, 6), (65536, 4, 16, 2, 6)],
        sim=[(96, 16, 16, 4, 8), (256, 8, 8, 3, 6), (192, 4, 16, 2, 6)],
    )
    adversarial = (
        {"tokens": 3, "groups": 1, "size": 2, "keep": 1, "top_k": 2},
        {"tokens": 2, "groups": 3, "size": 5, "keep": 3, "top_k": 7},
    )
    distributions = ("normal", "uniform", "heavy_tail", "structured")

    def legal(self, dims: Dims) -> bool:
        """On its axes, with enough groups to keep and experts in them to choose."""
        enough = dims["keep"] <= dims["groups"] and dims["top_k"] <= dims["keep"] * dims["size"]
        return super().legal(dims) and enough

    def elements(self, dims: Dims) -> int:
        """Scores, as often as a baseline looks at them."""
        return dims["tokens"] * dims["groups"] * dims["size"] * dims["top_k"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws scores, the logistic function of logits, and biases of some hundredths."""
        tokens, groups, size, keep, top_k = (workload.dims[axis.name] for axis in self.axes)
        shape = (tokens, groups * size)
        logits = draw(shape, torch.float32, workload.distribution, generator)
        score = (torch.sigmoid(logits) * STEPS).round().clamp(min=1)
        bias = (0.05 * STEPS * torch.randn(groups * size, generator=generator)).round()
        return {
            "score": score / STEPS,
            "bias": bias / STEPS,
            "groups": groups,
            "keep": keep,
            "top_k": top_k,
            **self.scalars(workload),
        }

    def oracle(
        self,
        score: torch.Tensor,
        bias: torch.Tensor,
        groups: int,
        keep: int,
        top_k: int,
        factor: float,
    ) -> tuple[torch.Tensor, ...]:
        """By sorting, in fp64."""
        rank = (score.double() + bias.double()).view(len(score), groups, -1)
        worth = rank.sort(dim=2).values[:, :, -2:].sum(2)
        order = worth.sort(dim=1, descending=True, stable=True).indices
        lost = torch.ones_like(worth, dtype=torch.bool).scatter(1, order[:, :keep], False)
        rank = rank.masked_fill(lost[:, :, None], -torch.inf).flatten(1)
        expert = rank.sort(dim=1, descending=True, stable=True).indices[:, :top_k]
        weight = score.double().gather(1, expert)
        return factor * weight / weight.sum(1, keepdim=True), expert

    def reference(
        self,
        score: torch.Tensor,
        bias: torch.Tensor,
        groups: int,
        keep: int,
        top_k: int,
        factor: float,
    ) -> tuple[torch.Tensor, ...]:
        """As DeepSeek-V3's gate reads, with stable sorts in place of top-k."""
        rank = (score + bias).view(score.shape[0], groups, -1)
        worth = torch.topk(rank, 2, dim=2).values.sum(dim=2)
        best = torch.sort(worth, dim=1, descending=True, stable=True).indices[:, :keep]
        kept = torch.zeros_like(worth).scatter_(1, best, 1.0)
        rank = torch.where(kept[:, :, None] > 0, rank, float("-inf")).flatten(1)
        order = torch.sort(rank, dim=1, descending=True, stable=True).indices
        expert = order[:, :top_k]
        chosen = torch.gather(score, 1, expert)
        weight = factor * chosen / chosen.sum(dim=1, keepdim=True)
        return weight, expert.to(torch.int32)

    def flops(self, dims: Dims) -> int:
        """A sum and two comparisons for each expert, 4 for each choice."""
        return dims["tokens"] * (3 * dims["groups"] * dims["size"] + 4 * dims["top_k"])


PROBLEM = MoeGroupedTopk()
