"""Adds up the weighted results of each token's experts."""

from __future__ import annotations

import torch

from kernel_gym.tasks.distributions import draw, draw_mask
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


class MoeCombine(Problem):
    """`out[t] = residual[t] + factor * sum over k of weight[t, k] * y[place[t, k]]`.

    Choices with `place[t, k] = -1` were dropped and add nothing. Rows of y without a choice are
    padding and hold any finite values.
    """

    name = "moe_combine"
    summary = "weighted sum of each token's expert rows, times a factor, plus the residual"
    category = "Fusion"
    level = 2
    tags = ("moe", "decoder-llm", "memory-bound", "gather")
    source = "tokens of Mixtral-8x7B, Qwen3-30B-A3B, DeepSeek-V3 (factor 2.5) and OLMoE-1B-7B"

    args = (
        TensorArg("y", torch.float16, shape="rows, hidden"),
        TensorArg("place", torch.int32, shape="tokens, top_k"),
        TensorArg("weight", torch.float32, shape="tokens, top_k"),
        TensorArg("residual", torch.float16, shape="tokens, hidden"),
        ScalarArg("factor", float, values=(1.0, 2.5, 1.8)),
    )
    outputs = (Output("out", torch.float16, shape="tokens, hidden"),)
    axes = (
        Axis("tokens", 1, 1 << 17),
        Axis("top_k", 1, 16),
        Axis("rows", 1, 1 << 20),
        Axis("hidden", 1, 1 << 14),
    )
    train = points(
        "tokens top_k rows hidden",
        full=[
            (4096, 2, 9216, 4096),
            (8192, 8, 73728, 2048),
            (2048, 8, 20480, 7168),
            (4096, 8, 36864, 2048),
        ],
        sim=[(64, 2, 192, 1024), (32, 8, 320, 512), (24, 4, 128, 1792), (100, 8, 900, 256)],
    )
    production = points(
        "tokens top_k rows hidden",
        full=[
            (16384, 4, 70000, 2048),
            (512, 8, 8192, 7168),
            (1024, 1, 1500, 5120),
            (8192, 2, 20000, 6144),
        ],
        sim=[(120, 4, 600, 256), (8, 8, 130, 1024), (64, 1, 100, 1280), (60, 2, 160, 768)],
    )
    adversarial = (
        {"tokens": 1, "top_k": 1, "rows": 2, "hidden": 3},
        {"tokens": 7, "top_k": 3, "rows": 30, "hidden": 9},
    )
    distributions = ("normal", "uniform", "heavy_tail", "sparse")

    def elements(self, dims: Dims) -> int:
        """Elements of the results of the experts."""
        return dims["rows"] * dims["hidden"]

    def legal(self, dims: Dims) -> bool:
        """On its axes, with at least one row for each choice and at most 32."""
        choices = dims["tokens"] * dims["top_k"]
        return super().legal(dims) and choices <= dims["rows"] <= 32 * choices

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws rows by the distribution, places of which a twentieth is -1, and weights."""
        tokens, top_k, rows, hidden = (workload.dims[axis.name] for axis in self.axes)
        place = torch.randperm(rows, generator=generator)[: tokens * top_k].view(tokens, top_k)
        dropped = draw_mask((tokens, top_k), 0.05, generator)
        logits = torch.randn((tokens, top_k), generator=generator)
        return {
            "y": draw((rows, hidden), torch.float16, workload.distribution, generator),
            "place": place.masked_fill(dropped, -1).int(),
            "weight": torch.softmax(logits, dim=1),
            "residual": torch.randn((tokens, hidden), generator=generator).half(),
            **self.scalars(workload),
        }

    def oracle(
        self,
        y: torch.Tensor,
        place: torch.Tensor,
        weight: torch.Tensor,
        residual: torch.Tensor,
        factor: float,
    ) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        kept = place >= 0
        rows = y.double()[torch.where(kept, place, 0).long()]
        total = (rows * (weight.double() * kept)[:, :, None]).sum(1)
        return (residual.double() + factor * total,)

    def reference(
        self,
        y: torch.Tensor,
        place: torch.Tensor,
        weight: torch.Tensor,
        residual: torch.Tensor,
        factor: float,
    ) -> tuple[torch.Tensor, ...]:
        """The rows gathered, then one batched product in float32, rounded once."""
        kept = place >= 0
        rows = y[torch.where(kept, place, 0).long()].float()
        total = torch.bmm((weight * kept)[:, None], rows)[:, 0]
        return (residual.add(total, alpha=factor).half(),)

    def bytes(self, dims: Dims) -> int:
        """Reads places, weights and residual, and no row of y at least; writes the output."""
        return 8 * dims["tokens"] * dims["top_k"] + 4 * dims["tokens"] * dims["hidden"]

    def flops(self, dims: Dims) -> int:
        """A product and a sum for each element of the residual, the least there is."""
        return 2 * dims["tokens"] * dims["hidden"]


PROBLEM = MoeCombine()
