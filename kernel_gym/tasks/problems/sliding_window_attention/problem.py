"""Causal attention to the most recent keys only."""

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

_AXES = ("batch", "heads", "seq", "head_dim")


class SlidingWindowAttention(AttentionByHeads):
    """`softmax(scale * q k^T) v` by head, where query i sees keys `i - window + 1 .. i`."""

    name = "sliding_window_attention"
    summary = "attention by head in which query i sees the keys i - window + 1 .. i"
    category = "Attention"
    level = 4
    tags = ("decoder-llm", "moe", "compute-bound")
    source = "windows of Mistral-7B (4096), Gemma-2 and Phi-3-small; heads scaled to one device"

    args = (
        TensorArg("q", torch.float16, shape="batch, heads, seq, head_dim"),
        TensorArg("k", torch.float16, shape="batch, heads, seq, head_dim"),
        TensorArg("v", torch.float16, shape="batch, heads, seq, head_dim"),
        ScalarArg("window", int),
        ScalarArg("scale", float, values=(0.125, 0.0884, 0.25, 0.05)),
    )
    outputs = (Output("out", torch.float16, shape="batch, heads, seq, head_dim"),)
    axes = (
        Axis("batch", 1, 256),
        Axis("heads", 1, 128),
        Axis("seq", 1, 1 << 14),
        Axis("head_dim", 64, 128, multiple=64),
        Axis("window", 1, 1 << 13),
    )
    train = points(
        "batch heads seq head_dim window",
        full=[
            (1, 32, 8192, 128, 4096),
            (2, 16, 4096, 128, 1024),
            (1, 32, 4096, 64, 512),
            (4, 32, 2048, 128, 256),
        ],
        sim=[(1, 2, 256, 64, 64), (2, 2, 160, 64, 100), (1, 1, 384, 64, 32), (1, 3, 192, 64, 17)],
    )
    production = points(
        "batch heads seq head_dim window",
        full=[(1, 16, 8192, 128, 2048), (8, 16, 1024, 64, 128), (1, 32, 6000, 128, 2047)],
        sim=[(1, 2, 320, 64, 128), (1, 1, 256, 128, 96), (3, 2, 150, 64, 31)],
    )
    adversarial = (
        {"batch": 1, "heads": 1, "seq": 1, "head_dim": 64, "window": 1},
        {"batch": 1, "heads": 2, "seq": 37, "head_dim": 64, "window": 100},
    )
    distributions = ("normal", "uniform", "structured", "wide")

    def elements(self, dims: Dims) -> int:
        """Entries of the score matrices times head_dim."""
        return dims["batch"] * dims["heads"] * dims["seq"] ** 2 * dims["head_dim"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws q, k, v float16."""
        shape = tuple(workload.dims[axis] for axis in _AXES)
        q, k, v = (draw(shape, torch.float16, workload.distribution, generator) for _ in range(3))
        return {"q": q, "k": k, "v": v, "window": workload.dims["window"], **self.scalars(workload)}

    def reference(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, window: int, scale: float
    ) -> tuple[torch.Tensor, ...]:
        """One PyTorch call with a mask."""
        place = torch.arange(q.shape[2], device=q.device)
        back = place[:, None] - place
        visible = (back >= 0) & (back < window)
        return (F.scaled_dot_product_attention(q, k, v, attn_mask=visible, scale=scale),)

    def adjusted(
        self, scores: torch.Tensor, batch: int, head: int, inputs: Mapping[str, Value]
    ) -> torch.Tensor:
        """Hides later keys, and those before the window."""
        place = torch.arange(scores.shape[1], device=scores.device)
        back = place[:, None] - place
        hidden = (back < 0) | (back >= inputs["window"])
        return scores.masked_fill(hidden, float("-inf"))

    def flops(self, dims: Dims) -> int:
        """Two products over the visible scores."""
        batch, heads, seq, width = (dims[axis] for axis in _AXES)
        window = min(dims["window"], seq)
        visible = window * seq - window * (window - 1) // 2
        return 4 * batch * heads * width * visible


PROBLEM = SlidingWindowAttention()
