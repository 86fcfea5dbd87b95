"""Attention with a prefix that every query sees."""

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


class PrefixAttention(AttentionByHeads):
    """`softmax(scale * q k^T) v`: query i sees keys 0 .. i, and all keys j < prefix[b].

    Query head h uses key and value head `h // group`. A prefix may be 0, where the mask is causal,
    and as long as the sequence, where there is no mask. Scores may exceed 88, where exp overflows
    in float32.
    """

    name = "prefix_attention"
    summary = "grouped attention, bfloat16, causal but for a bidirectional prefix of each sequence"
    category = "Attention"
    level = 4
    tags = ("decoder-llm", "vision", "compute-bound", "ragged")
    source = "PaliGemma-3B (8 heads to 1, 256 image tokens) and prefix language models, by device"

    args = (
        TensorArg("q", torch.bfloat16, shape="batch, kv_heads * group, seq, head_dim"),
        TensorArg("k", torch.bfloat16, shape="batch, kv_heads, seq, head_dim"),
        TensorArg("v", torch.bfloat16, shape="batch, kv_heads, seq, head_dim"),
        TensorArg("prefix", torch.int32, shape="batch"),
        ScalarArg("scale", float, values=(0.125, 0.0884, 0.2, 0.1)),
    )
    outputs = (Output("out", torch.bfloat16, shape="batch, kv_heads * group, seq, head_dim"),)
    axes = (
        Axis("batch", 1, 256),
        Axis("kv_heads", 1, 64),
        Axis("group", 1, 16),
        Axis("seq", 1, 1 << 14),
        Axis("head_dim", 64, 128, multiple=64),
    )
    train = points(
        "batch kv_heads group seq head_dim",
        full=[
            (8, 1, 8, 1024, 128),
            (4, 8, 4, 1024, 128),
            (2, 8, 2, 2048, 128),
            (16, 1, 8, 512, 64),
        ],
        sim=[(2, 1, 4, 96, 128), (3, 1, 2, 128, 64), (2, 2, 2, 96, 64), (4, 1, 2, 96, 64)],
    )
    production = points(
        "batch kv_heads group seq head_dim",
        full=[
            (4, 1, 8, 1280, 128),
            (16, 8, 4, 512, 128),
            (2, 4, 7, 2048, 128),
            (32, 1, 8, 300, 64),
            (1, 8, 8, 4096, 64),
        ],
        sim=[
            (2, 1, 8, 80, 64),
            (4, 1, 4, 64, 64),
            (2, 1, 7, 80, 64),
            (8, 1, 2, 50, 64),
            (1, 1, 2, 256, 64),
        ],
    )
    adversarial = (
        {"batch": 2, "kv_heads": 1, "group": 1, "seq": 1, "head_dim": 64},
        {"batch": 3, "kv_heads": 2, "group": 3, "seq": 33, "head_dim": 64},
    )
    distributions = ("normal", "large", "structured", "uniform")

    def elements(self, dims: Dims) -> int:
        """Entries of the score matrices times head_dim, the measure of its cost."""
        return (
            dims["batch"] * dims["kv_heads"] * dims["group"] * dims["seq"] ** 2 * dims["head_dim"]
        )

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws q, k, v by the distribution, scores of about 100 for "large", and scalars."""
        batch, kv_heads, group, seq, width = (workload.dims[a.name] for a in self.axes)
        kind = workload.distribution
        shrink = (1 / 32, 1e-3, 1e-3) if kind == "large" else (1, 1, 1)
        parts = (kv_heads * group, kv_heads, kv_heads)
        counts = (seq, seq, seq)
        q, k, v = (
            (by * draw((batch, h, n, width), torch.float32, kind, generator)).to(torch.bfloat16)
            for by, h, n in zip(shrink, parts, counts, strict=True)
        )
        return {
            "q": q,
            "k": k,
            "v": v,
            "prefix": torch.randint(0, seq + 1, (batch,), generator=generator).int(),
            **self.scalars(workload),
        }

    def reference(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, prefix: torch.Tensor, scale: float
    ) -> tuple[torch.Tensor, ...]:
        """One PyTorch call with a mask."""
        place = torch.arange(q.shape[2], device=q.device)
        visible = (place[None, :] <= place[:, None]) | (place < prefix[:, None, None])
        out = F.scaled_dot_product_attention(
            q, k, v, attn_mask=visible[:, None], scale=scale, enable_gqa=True
        )
        return (out,)

    def adjusted(
        self, scores: torch.Tensor, batch: int, head: int, inputs: Mapping[str, Value]
    ) -> torch.Tensor:
        """Hides later keys beyond the prefix."""
        prefix = inputs["prefix"]
        assert isinstance(prefix, torch.Tensor)
        place = torch.arange(scores.shape[1], device=scores.device)
        later = place[None, :] > place[:, None]
        return scores.masked_fill(later & (place >= prefix[batch]), float("-inf"))

    def flops(self, dims: Dims) -> int:
        """Two products over the lower triangle of the scores, diagonal included."""
        batch, kv_heads, group, seq, width = (dims[axis.name] for axis in self.axes)
        return 4 * batch * kv_heads * group * width * (seq * (seq + 1) // 2)


PROBLEM = PrefixAttention()
