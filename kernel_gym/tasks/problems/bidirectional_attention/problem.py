"""Attention of an encoder with padded sequences."""

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


class BidirectionalAttention(AttentionByHeads):
    """`softmax(scale * q k^T) v` by batch and head, over the first `length[b]` keys.

    Every query sees every key j < length[b], also queries beyond the length. Lengths are from 1 to
    seq. Scores may exceed 88, where exp overflows in float32.
    """

    name = "bidirectional_attention"
    summary = "unmasked softmax(scale * q @ k^T) @ v for each head, keys beyond length[b] excluded"
    category = "Attention"
    level = 4
    tags = ("decoder-llm", "vision", "audio", "compute-bound", "ragged")
    source = "encoders BERT-large, ESM-2-650M, ViT-L/16 and Whisper-large, heads of 64 and 128"

    args = (
        TensorArg("q", torch.float16, shape="batch, heads, seq, head_dim"),
        TensorArg("k", torch.float16, shape="batch, heads, seq, head_dim"),
        TensorArg("v", torch.float16, shape="batch, heads, seq, head_dim"),
        TensorArg("length", torch.int32, shape="batch"),
        ScalarArg("scale", float, values=(0.125, 0.0884, 0.2, 0.1)),
    )
    outputs = (Output("out", torch.float16, shape="batch, heads, seq, head_dim"),)
    axes = (
        Axis("batch", 1, 256),
        Axis("heads", 1, 128),
        Axis("seq", 1, 1 << 14),
        Axis("head_dim", 64, 128, multiple=64),
    )
    train = points(
        "batch heads seq head_dim",
        full=[(16, 16, 512, 64), (32, 16, 197, 64), (4, 20, 1500, 64), (8, 20, 1024, 64)],
        sim=[(2, 2, 192, 64), (1, 3, 197, 64), (1, 2, 256, 64), (2, 1, 128, 128)],
    )
    production = points(
        "batch heads seq head_dim",
        full=[
            (8, 32, 1024, 128),
            (64, 12, 128, 64),
            (2, 16, 2048, 64),
            (16, 8, 577, 64),
            (4, 24, 1024, 128),
        ],
        sim=[(1, 2, 160, 128), (4, 2, 96, 64), (1, 1, 384, 64), (1, 2, 145, 64), (2, 2, 130, 64)],
    )
    adversarial = (
        {"batch": 1, "heads": 1, "seq": 1, "head_dim": 64},
        {"batch": 2, "heads": 1, "seq": 33, "head_dim": 64},
    )
    distributions = ("normal", "large", "structured", "uniform")

    def elements(self, dims: Dims) -> int:
        """Entries of the score matrices times head_dim, the measure of its cost."""
        return dims["batch"] * dims["heads"] * dims["seq"] ** 2 * dims["head_dim"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws q, k, v by the distribution, scores of about 100 for "large", and scalars."""
        batch, heads, seq, width = (workload.dims[a.name] for a in self.axes)
        kind = workload.distribution
        shrink = (1 / 32, 1e-3, 1e-3) if kind == "large" else (1, 1, 1)
        parts = (heads, heads, heads)
        counts = (seq, seq, seq)
        q, k, v = (
            (by * draw((batch, h, n, width), torch.float32, kind, generator)).to(torch.float16)
            for by, h, n in zip(shrink, parts, counts, strict=True)
        )
        return {
            "q": q,
            "k": k,
            "v": v,
            "length": torch.randint(1, seq + 1, (batch,), generator=generator).int(),
            **self.scalars(workload),
        }

    def reference(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, length: torch.Tensor, scale: float
    ) -> tuple[torch.Tensor, ...]:
        """One PyTorch call with a mask."""
        place = torch.arange(q.shape[2], device=q.device)
        visible = (place < length[:, None])[:, None, None, :]
        return (F.scaled_dot_product_attention(q, k, v, attn_mask=visible, scale=scale),)

    def adjusted(
        self, scores: torch.Tensor, batch: int, head: int, inputs: Mapping[str, Value]
    ) -> torch.Tensor:
        """Hides keys beyond the length."""
        length = inputs["length"]
        assert isinstance(length, torch.Tensor)
        place = torch.arange(scores.shape[1], device=scores.device)
        return scores.masked_fill(place >= length[batch], float("-inf"))

    def flops(self, dims: Dims) -> int:
        """Two products over all queries and, at least, one key."""
        batch, heads, seq, width = (dims[axis.name] for axis in self.axes)
        return 4 * batch * heads * seq * width


PROBLEM = BidirectionalAttention()
