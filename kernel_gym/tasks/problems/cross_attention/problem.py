"""Attention of image or text tokens to other tokens."""

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


class CrossAttention(AttentionByHeads):
    """`softmax(scale * q k^T) v` by batch and head; queries and keys come from different sequences.

    Every query sees every key. There may be more queries than keys or fewer. Scores may exceed 88,
    where exp overflows in float32.
    """

    name = "cross_attention"
    summary = "unmasked softmax(scale * q @ k^T) @ v for each head, with few keys or many"
    category = "Attention"
    level = 4
    tags = ("diffusion", "audio", "vision", "compute-bound")
    source = "cross-attention of SDXL (77 text tokens), Whisper-large decoder, DETR and Perceiver"

    args = (
        TensorArg("q", torch.float16, shape="batch, heads, queries, head_dim"),
        TensorArg("k", torch.float16, shape="batch, heads, keys, head_dim"),
        TensorArg("v", torch.float16, shape="batch, heads, keys, head_dim"),
        ScalarArg("scale", float, values=(0.125, 0.0884, 0.2, 0.1)),
    )
    outputs = (Output("out", torch.float16, shape="batch, heads, queries, head_dim"),)
    axes = (
        Axis("batch", 1, 256),
        Axis("heads", 1, 128),
        Axis("queries", 1, 1 << 14),
        Axis("keys", 1, 1 << 14),
        Axis("head_dim", 64, 128, multiple=64),
    )
    train = points(
        "batch heads queries keys head_dim",
        full=[
            (2, 10, 4096, 77, 64),
            (2, 20, 1024, 77, 64),
            (8, 20, 448, 1500, 64),
            (8, 8, 300, 1050, 64),
        ],
        sim=[(1, 2, 512, 77, 64), (2, 2, 160, 77, 64), (1, 2, 56, 375, 64), (1, 3, 75, 262, 64)],
    )
    production = points(
        "batch heads queries keys head_dim",
        full=[
            (2, 24, 4096, 154, 64),
            (4, 16, 512, 4096, 64),
            (16, 20, 1, 1500, 64),
            (2, 40, 4680, 512, 128),
            (1, 12, 64, 16384, 64),
        ],
        sim=[
            (1, 2, 400, 154, 64),
            (1, 1, 64, 512, 64),
            (4, 4, 1, 750, 64),
            (1, 2, 234, 64, 128),
            (1, 1, 32, 1024, 64),
        ],
    )
    adversarial = (
        {"batch": 1, "heads": 1, "queries": 1, "keys": 1, "head_dim": 64},
        {"batch": 1, "heads": 2, "queries": 33, "keys": 5, "head_dim": 64},
    )
    distributions = ("normal", "large", "structured", "uniform")

    def elements(self, dims: Dims) -> int:
        """Entries of the score matrices times head_dim, the measure of its cost."""
        return dims["batch"] * dims["heads"] * dims["queries"] * dims["keys"] * dims["head_dim"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws q, k, v by the distribution, scores of about 100 for "large", and scalars."""
        batch, heads, queries, keys, width = (workload.dims[a.name] for a in self.axes)
        kind = workload.distribution
        shrink = (1 / 32, 1e-3, 1e-3) if kind == "large" else (1, 1, 1)
        parts = (heads, heads, heads)
        counts = (queries, keys, keys)
        q, k, v = (
            (by * draw((batch, h, n, width), torch.float32, kind, generator)).to(torch.float16)
            for by, h, n in zip(shrink, parts, counts, strict=True)
        )
        return {
            "q": q,
            "k": k,
            "v": v,
            **self.scalars(workload),
        }

    def reference(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float
    ) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (F.scaled_dot_product_attention(q, k, v, scale=scale),)

    def adjusted(
        self, scores: torch.Tensor, batch: int, head: int, inputs: Mapping[str, Value]
    ) -> torch.Tensor:
        """Hides nothing."""
        return scores

    def flops(self, dims: Dims) -> int:
        """Two products over all pairs of query and key."""
        return 4 * self.elements(dims)


PROBLEM = CrossAttention()
