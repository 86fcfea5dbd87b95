"""Grouped matrix product: each expert's weight for its share of the tokens."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from kernel_gym.tasks.distributions import draw
from kernel_gym.tasks.problem import (
    Axis,
    Dims,
    Output,
    Problem,
    TensorArg,
    Value,
    points,
)
from kernel_gym.tasks.workload import Workload


class GroupedMatmul(Problem):
    """`out[t] = x[t] @ weight[e]` for the tokens t in `ends[e - 1] .. ends[e] - 1`."""

    name = "grouped_matmul"
    summary = "x @ weight[e] for each expert's consecutive tokens; ends[e] is where they stop"
    category = "MatMul"
    level = 4
    tags = ("moe", "decoder-llm", "compute-bound", "ragged")
    source = "expert layers of Mixtral-8x7B, Qwen1.5-MoE-A2.7B, DeepSeek-V2-Lite and OLMoE-1B-7B"
    domain = "All floating-point inputs are finite. An expert may have no token."

    args = (
        TensorArg("x", torch.bfloat16, shape="tokens, k"),
        TensorArg("weight", torch.bfloat16, shape="experts, k, n"),
        TensorArg("ends", torch.int32, shape="experts"),
    )
    outputs = (Output("out", torch.bfloat16, shape="tokens, n"),)
    axes = (
        Axis("tokens", 1, 1 << 17),
        Axis("experts", 1, 256),
        Axis("n", 8, 1 << 14, multiple=8),
        Axis("k", 8, 1 << 14, multiple=8),
    )
    train = points(
        "tokens experts n k",
        full=[(4096, 8, 3584, 4096), (8192, 60, 1408, 2048), (6144, 64, 1408, 2048)],
        sim=[(256, 8, 224, 256), (256, 15, 176, 256), (192, 16, 176, 128)],
    )
    production = points(
        "tokens experts n k",
        full=[(8192, 64, 1024, 2048), (1024, 8, 4096, 3584), (2048, 16, 6400, 4096)],
        sim=[(256, 16, 128, 256), (64, 8, 256, 224), (128, 4, 400, 256)],
    )
    adversarial = ({"tokens": 3, "experts": 5, "n": 8, "k": 8},)
    distributions = ("normal", "uniform", "structured")

    def elements(self, dims: Dims) -> int:
        """Multiply-adds, and the weights, which are read whatever the tokens are."""
        return dims["n"] * dims["k"] * (dims["tokens"] + 8 * dims["experts"])

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x [tokens, k], weight [experts, k, n] over sqrt(k), bfloat16, and ends int32.

        The shares are uneven; one expert of several gets nothing.
        """
        tokens, experts, n, k = (workload.dims[axis.name] for axis in self.axes)
        x = draw((tokens, k), torch.bfloat16, workload.distribution, generator)
        weight = draw((experts, k, n), torch.float32, workload.distribution, generator) * k**-0.5
        busy = torch.randperm(experts, generator=generator)[: max(1, experts - 1)]
        popularity = torch.rand(len(busy), generator=generator) + 0.2
        others = torch.multinomial(popularity, tokens, replacement=True, generator=generator)
        others[: len(busy)] = torch.arange(min(tokens, len(busy)))
        counts = torch.bincount(busy[others], minlength=experts)
        return {"x": x, "weight": weight.bfloat16(), "ends": counts.cumsum(0).int()}

    def oracle(
        self, x: torch.Tensor, weight: torch.Tensor, ends: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Expert by expert, in fp64."""
        out = torch.zeros(x.shape[0], weight.shape[2], dtype=torch.float64, device=x.device)
        start = 0
        for expert, end in enumerate(ends.tolist()):
            out[start:end] = x[start:end].double() @ weight[expert].double()
            start = end
        return (out,)

    def reference(
        self, x: torch.Tensor, weight: torch.Tensor, ends: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (F.grouped_mm(x, weight, offs=ends),)

    def bytes(self, dims: Dims) -> int:
        """Read x, ends and the weights of experts that have tokens, write out."""
        tokens, experts, n, k = (dims[axis.name] for axis in self.axes)
        busy = min(tokens, max(1, experts - 1))
        return 2 * (tokens * k + busy * k * n + tokens * n) + 4 * experts

    def flops(self, dims: Dims) -> int:
        """A product and an addition for each multiply-add."""
        return 2 * dims["tokens"] * dims["n"] * dims["k"]


PROBLEM = GroupedMatmul()
