"""Routing of tokens to experts: the best logits and their softmax."""

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


class MoeTopkSoftmax(Problem):
    """`expert[t]` are the top_k largest logits' places, largest first; `weight` their softmax."""

    name = "moe_topk_softmax"
    summary = "top_k experts of each token, best first, with the softmax over the chosen logits"
    category = "Fusion"
    level = 3
    tags = ("moe", "decoder-llm", "memory-bound", "reduction")
    source = "routers of Mixtral-8x7B (8, 2), Qwen3-30B-A3B (128, 8), OLMoE-1B-7B (64, 8), DBRX"
    domain = (
        "All floating-point inputs are finite. Logits may be equal: then any order of "
        "their experts is right."
    )

    args = (
        TensorArg("logits", torch.float32, shape="tokens, experts"),
        ScalarArg("top_k", int),
    )
    outputs = (
        Output("weight", torch.float32, check=Check.CUSTOM, shape="tokens, top_k"),
        Output("expert", torch.int32, check=Check.CUSTOM, shape="tokens, top_k"),
    )
    axes = (Axis("tokens", 1, 1 << 20), Axis("experts", 1, 512), Axis("top_k", 1, 16))
    train = points(
        "tokens experts top_k",
        full=[(65536, 128, 8), (131072, 64, 8), (262144, 8, 2), (131072, 16, 4)],
        sim=[(192, 128, 8), (256, 64, 8), (512, 8, 2), (384, 16, 4)],
    )
    production = points(
        "tokens experts top_k",
        full=[(32768, 256, 8), (131072, 60, 4), (262144, 16, 2)],
        sim=[(128, 256, 8), (256, 60, 4), (512, 16, 2)],
    )
    adversarial = ({"tokens": 3, "experts": 1, "top_k": 1}, {"tokens": 2, "experts": 5, "top_k": 5})
    distributions = ("normal", "uniform", "heavy_tail", "structured")

    def legal(self, dims: Dims) -> bool:
        """On its axes, with as many experts as are chosen."""
        return super().legal(dims) and dims["top_k"] <= dims["experts"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws logits float32[tokens, experts] in steps of 1 / 64: some of a row are equal.

        Weights of logits that are farther apart than the range allows are 0 in float32.
        """
        shape = (workload.dims["tokens"], workload.dims["experts"])
        logits = draw(shape, torch.float32, workload.distribution, generator).clamp(-40, 40)
        return {"logits": (logits * 64).round() / 64, "top_k": workload.dims["top_k"]}

    def oracle(self, logits: torch.Tensor, top_k: int) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        best, expert = logits.double().topk(top_k, dim=1)
        return torch.softmax(best, dim=1), expert

    def reference(self, logits: torch.Tensor, top_k: int) -> tuple[torch.Tensor, ...]:
        """As Mixtral writes it: softmax over all, the best of it, renormalised."""
        share = torch.softmax(logits, dim=1)
        best, expert = torch.topk(share, top_k, dim=1)
        return best / best.sum(dim=1, keepdim=True), expert.to(torch.int32)

    def mismatches(
        self, name: str, found: torch.Tensor, inputs: Mapping[str, Value], expected: torch.Tensor
    ) -> torch.Tensor:
        """Places must be distinct and in range, and gather the best logits in order.

        Equal logits may change places. Weights may err as an exponential of float32 does.
        """
        if name == "weight":
            return ~((found.double() - expected).abs() <= 4e-6 * expected + 1e-9)
        logits = inputs["logits"]
        if name != "expert" or not isinstance(logits, torch.Tensor):
            return super().mismatches(name, found, inputs, expected)
        at = found.long()
        outside = (at < 0) | (at >= logits.shape[1])
        ordered = at.sort(dim=1).values
        twice = (ordered.diff(dim=1) == 0).any(dim=1, keepdim=True)
        values = logits.double().gather(1, at.clamp(0, logits.shape[1] - 1))
        best = logits.double().gather(1, expected.long())
        return outside | twice | ((values - best).abs() > 1e-6 * (1 + best.abs()))

    def flops(self, dims: Dims) -> int:
        """A comparison for each logit, 4 for each choice."""
        return dims["tokens"] * (dims["experts"] + 4 * dims["top_k"])


PROBLEM = MoeTopkSoftmax()
