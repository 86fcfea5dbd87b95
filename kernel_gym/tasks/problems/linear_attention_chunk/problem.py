"""Causal linear attention with a decay for each head (retention, Lightning attention)."""

from __future__ import annotations

import torch

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

_AXES = ("batch", "heads", "seq", "head_dim")


class LinearAttentionChunk(Problem):
    """`out[t] = sum over s <= t of decay[h]^(t - s) * (q[t] . k[s]) * v[s]`, by batch and head.

    Computed step by step it is a recurrence over a head_dim x head_dim state; computed in chunks it
    consists of products.
    """

    name = "linear_attention_chunk"
    summary = "causal linear attention with exponential decay by head, no softmax"
    category = "Attention"
    level = 5
    tags = ("state-space", "decoder-llm", "moe", "compute-bound", "sequential")
    source = "heads of RetNet-1.3B and 2.7B, Lightning attention of MiniMax-01 (128), GLA-1.3B"

    args = (
        TensorArg("q", torch.float16, shape="batch, heads, seq, head_dim"),
        TensorArg("k", torch.float16, shape="batch, heads, seq, head_dim"),
        TensorArg("v", torch.float16, shape="batch, heads, seq, head_dim"),
        TensorArg("decay", torch.float32, shape="heads"),
    )
    outputs = (Output("out", torch.float16, shape="batch, heads, seq, head_dim"),)
    axes = (
        Axis("batch", 1, 256),
        Axis("heads", 1, 128),
        Axis("seq", 1, 1 << 14),
        Axis("head_dim", 16, 256, multiple=16),
    )
    train = points(
        "batch heads seq head_dim",
        full=[(4, 8, 2048, 256), (2, 32, 2048, 128), (1, 64, 4096, 128), (8, 16, 2048, 64)],
        sim=[(1, 2, 128, 128), (1, 3, 160, 64), (2, 2, 192, 48), (1, 4, 96, 64)],
    )
    production = points(
        "batch heads seq head_dim",
        full=[(1, 10, 4096, 256), (2, 64, 2048, 128), (16, 4, 1000, 128)],
        sim=[(1, 2, 200, 64), (2, 4, 64, 64), (1, 2, 125, 96)],
    )
    adversarial = ({"batch": 1, "heads": 2, "seq": 1, "head_dim": 16},)
    distributions = ("normal", "uniform", "structured")
    tiny_inputs = False

    def elements(self, dims: Dims) -> int:
        """Steps of the recurrence times the size of its state."""
        return dims["batch"] * dims["heads"] * dims["seq"] * dims["head_dim"] ** 2

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws q over sqrt(head_dim), k, v float16, and decays 1 - 2^-2 .. 1 - 2^-7."""
        shape = tuple(workload.dims[axis] for axis in _AXES)
        kind = workload.distribution
        q = draw(shape, torch.float32, kind, generator) / shape[3] ** 0.5
        rate = torch.exp2(-2 - 5 * torch.rand(shape[1], generator=generator))
        return {
            "q": q.half(),
            "k": draw(shape, torch.float16, kind, generator),
            "v": draw(shape, torch.float16, kind, generator),
            "decay": 1 - rate,
        }

    def oracle(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, decay: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Head by head with the matrix of powers, in fp64."""
        place = torch.arange(q.shape[2], dtype=torch.float64, device=q.device)
        back = place[:, None] - place
        out = torch.empty(q.shape, dtype=torch.float64, device=q.device)
        for h in range(q.shape[1]):
            power = (decay[h].double() ** back.clamp(min=0)).tril()
            scores = q[:, h].double() @ k[:, h].double().mT * power
            out[:, h] = scores @ v[:, h].double()
        return (out,)

    def reference(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, decay: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """The parallel form of RetNet: two products around a mask of powers."""
        place = torch.arange(q.shape[2], device=q.device)
        back = (place[:, None] - place).clamp(min=0)
        power = torch.tril(decay[:, None, None] ** back)
        scores = torch.matmul(q, k.transpose(2, 3)) * power[None].half()
        return (torch.matmul(scores, v),)

    def flops(self, dims: Dims) -> int:
        """The cheaper of the recurrence and of products over the lower triangle."""
        batch, heads, seq, width = (dims[axis] for axis in _AXES)
        return batch * heads * width * min(4 * seq * width, 2 * seq * (seq + 1))


PROBLEM = LinearAttentionChunk()
