"""Causal attention with linear biases (ALiBi)."""

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


class AlibiAttention(AttentionByHeads):
    """`softmax(scale * q k^T + slope[h] * (j - i)) v`: query i sees keys j = 0 .. i.

    The slopes are positive, one for each head, so that far keys count less. Everything between the
    products is computed in float32. Scores may exceed 88, where exp overflows in float32.
    """

    name = "alibi_attention"
    summary = "causal attention whose scores fall linearly with the distance of query and key"
    category = "Attention"
    level = 4
    tags = ("decoder-llm", "compute-bound")
    source = "heads of BLOOM-7B, MPT-7B, MPT-30B and Baichuan-13B"

    args = (
        TensorArg("q", torch.float16, shape="batch, heads, seq, head_dim"),
        TensorArg("k", torch.float16, shape="batch, heads, seq, head_dim"),
        TensorArg("v", torch.float16, shape="batch, heads, seq, head_dim"),
        TensorArg("slope", torch.float32, shape="heads"),
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
        full=[(1, 32, 2048, 128), (2, 32, 2048, 128), (4, 16, 1024, 64), (1, 40, 4096, 128)],
        sim=[(1, 2, 192, 128), (1, 3, 160, 64), (2, 2, 128, 64), (1, 1, 320, 64)],
    )
    production = points(
        "batch heads seq head_dim",
        full=[
            (1, 64, 2048, 128),
            (8, 12, 1024, 64),
            (1, 32, 8192, 128),
            (2, 25, 1024, 64),
            (1, 112, 2048, 128),
        ],
        sim=[(1, 4, 96, 128), (2, 3, 100, 64), (1, 1, 384, 64), (1, 5, 64, 64), (1, 7, 96, 64)],
    )
    adversarial = (
        {"batch": 1, "heads": 1, "seq": 1, "head_dim": 64},
        {"batch": 1, "heads": 3, "seq": 33, "head_dim": 64},
    )
    distributions = ("normal", "large", "structured", "uniform")

    def elements(self, dims: Dims) -> int:
        """Entries of the score matrices times head_dim, the measure of its cost."""
        return dims["batch"] * dims["heads"] * dims["seq"] ** 2 * dims["head_dim"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws q, k, v by the distribution, scores of about 100 for "large", and scalars.

        Slopes are up to twice or half of those of the paper, so that no formula gives them.
        """
        batch, heads, seq, width = (workload.dims[a.name] for a in self.axes)
        kind = workload.distribution
        shrink = (1 / 32, 1e-3, 1e-3) if kind == "large" else (1, 1, 1)
        parts = (heads, heads, heads)
        counts = (seq, seq, seq)
        q, k, v = (
            (by * draw((batch, h, n, width), torch.float32, kind, generator)).to(torch.float16)
            for by, h, n in zip(shrink, parts, counts, strict=True)
        )
        power = -8 * torch.arange(1, heads + 1, dtype=torch.float64) / heads
        power += 2 * torch.rand(heads, generator=generator) - 1
        return {
            "q": q,
            "k": k,
            "v": v,
            "slope": (2.0**power).clamp(max=1.0).float(),
            **self.scalars(workload),
        }

    def reference(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, slope: torch.Tensor, scale: float
    ) -> tuple[torch.Tensor, ...]:
        """One PyTorch call with a bias."""
        place = torch.arange(q.shape[2], device=q.device)
        far = place[None, :] - place[:, None]
        bias = torch.where(far > 0, float("-inf"), slope[:, None, None] * far).to(q.dtype)
        return (F.scaled_dot_product_attention(q, k, v, attn_mask=bias[None], scale=scale),)

    def adjusted(
        self, scores: torch.Tensor, batch: int, head: int, inputs: Mapping[str, Value]
    ) -> torch.Tensor:
        """Adds the slope by distance, and hides later keys."""
        slope = inputs["slope"]
        assert isinstance(slope, torch.Tensor)
        place = torch.arange(scores.shape[1], device=scores.device)
        far = place[None, :] - place[:, None]
        return (scores + slope[head].to(scores.dtype) * far).masked_fill(far > 0, float("-inf"))

    def flops(self, dims: Dims) -> int:
        """Two products over the lower triangle of the scores, diagonal included."""
        batch, heads, seq, width = (dims[axis.name] for axis in self.axes)
        return 4 * batch * heads * width * (seq * (seq + 1) // 2)


PROBLEM = AlibiAttention()
