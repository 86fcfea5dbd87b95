"""Causal attention with several query heads to a key head."""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F

from kernel_gym.tasks.distributions import draw
from kernel_gym.tasks.problem import (
    Axis,
    Dims,
    Output,
    ScalarArg,
    TensorArg,
    Value,
    points,
)
from kernel_gym.tasks.shared.attention import AttentionByHeads
from kernel_gym.tasks.workload import Workload


class GqaAttention(AttentionByHeads):
    """`softmax(scale * q[h] k[h // group]^T) v[h // group]`, query i sees keys 0 .. i."""

    name = "gqa_attention"
    summary = "causal attention, bfloat16; `group` query heads share a key and value head"
    category = "Attention"
    level = 4
    tags = ("decoder-llm", "moe", "compute-bound")
    source = "heads of Llama-3-8B (32 to 8), Qwen2.5-7B (28 to 4), Llama-3-70B, Gemma-2B (8 to 1)"

    args = (
        TensorArg("q", torch.bfloat16, shape="batch, kv_heads * group, seq, head_dim"),
        TensorArg("k", torch.bfloat16, shape="batch, kv_heads, seq, head_dim"),
        TensorArg("v", torch.bfloat16, shape="batch, kv_heads, seq, head_dim"),
        ScalarArg("scale", float, values=(0.125, 0.0884, 0.25, 0.05)),
    )
    outputs = (Output("out", torch.bfloat16, shape="batch, kv_heads * group, seq, head_dim"),)
    axes = (
        Axis("batch", 1, 256),
        Axis("kv_heads", 1, 64),
        Axis("group", 1, 32),
        Axis("seq", 1, 1 << 14),
        Axis("head_dim", 64, 128, multiple=64),
    )
    train = points(
        "batch kv_heads group seq head_dim",
        full=[
            (1, 8, 4, 4096, 128),
            (2, 4, 7, 2048, 128),
            (1, 8, 8, 2048, 128),
            (4, 2, 8, 1024, 64),
        ],
        sim=[(1, 1, 4, 192, 64), (2, 1, 2, 160, 64), (1, 2, 2, 128, 128), (1, 1, 7, 128, 64)],
    )
    production = points(
        "batch kv_heads group seq head_dim",
        full=[(1, 8, 5, 4096, 128), (8, 2, 7, 1024, 64), (1, 4, 8, 3000, 128)],
        sim=[(1, 1, 5, 160, 64), (1, 2, 7, 96, 64), (1, 1, 2, 197, 128)],
    )
    adversarial = ({"batch": 1, "kv_heads": 1, "group": 3, "seq": 1, "head_dim": 64},)
    distributions = ("normal", "uniform", "structured", "wide")

    def elements(self, dims: Dims) -> int:
        """Entries of the score matrices times head_dim."""
        heads = dims["kv_heads"] * dims["group"]
        return dims["batch"] * heads * dims["seq"] ** 2 * dims["head_dim"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws q, k, v bfloat16."""
        batch, kv_heads, group, seq, width = (workload.dims[a.name] for a in self.axes)
        q, k, v = (
            draw((batch, h, seq, width), torch.bfloat16, workload.distribution, generator)
            for h in (kv_heads * group, kv_heads, kv_heads)
        )
        return {"q": q, "k": k, "v": v, **self.scalars(workload)}

    def reference(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float
    ) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (
            F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale, enable_gqa=True),
        )

    def adjusted(
        self, scores: torch.Tensor, batch: int, head: int, inputs: Mapping[str, Value]
    ) -> torch.Tensor:
        """Hides later keys."""
        later = torch.ones_like(scores, dtype=torch.bool).triu(1)
        return scores.masked_fill(later, float("-inf"))

    def flops(self, dims: Dims) -> int:
        """Two products over the lower triangle of the scores, diagonal included."""
        batch, kv_heads, group, seq, width = (dims[axis.name] for axis in self.axes)
        return 4 * batch * kv_heads * group * width * (seq * (seq + 1) // 2)


PROBLEM = GqaAttention()
