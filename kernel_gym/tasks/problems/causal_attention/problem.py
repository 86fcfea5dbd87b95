"""Causal self-attention."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F

from kernel_gym.tasks.distributions import draw
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
from kernel_gym.tasks.yardsticks import Attention, farthest_attention, softmax_attention

SCORES = 1 << 25
"""Entries of score matrices that the oracle has at one time."""
_AXES = ("batch", "heads", "seq", "head_dim")


class CausalAttention(Problem):
    """`softmax(scale * q k^T, with key j masked for query i < j) v`, by batch and head."""

    name = "causal_attention"
    summary = "softmax(scale * q @ k^T) @ v for each head; query i sees keys 0 .. i"
    category = "Attention"
    level = 4
    tags = ("decoder-llm", "compute-bound")
    source = "heads of GPT-2, Llama-2-7B, Llama-3-8B, OPT-1.3B"

    args = (
        TensorArg("q", torch.float16, shape="batch, heads, seq, head_dim"),
        TensorArg("k", torch.float16, shape="batch, heads, seq, head_dim"),
        TensorArg("v", torch.float16, shape="batch, heads, seq, head_dim"),
        ScalarArg("scale", float, values=(0.125, 0.0884, 0.25, 0.05)),
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
        full=[(4, 12, 1024, 64), (1, 32, 2048, 128), (2, 32, 1024, 128), (1, 32, 4096, 64)],
        sim=[(1, 2, 256, 64), (2, 3, 128, 64), (1, 1, 384, 64), (1, 4, 192, 64)],
    )
    production = points(
        "batch heads seq head_dim",
        full=[(1, 40, 2048, 128), (8, 16, 512, 64), (1, 32, 3000, 128)],
        sim=[(1, 2, 320, 64), (1, 1, 256, 128), (3, 2, 197, 64)],
    )
    adversarial = ({"batch": 1, "heads": 1, "seq": 1, "head_dim": 64},)
    distributions = ("normal", "wide", "sparse", "structured")

    def elements(self, dims: Dims) -> int:
        """Entries of the score matrices times head_dim, the measure of its cost."""
        return dims["batch"] * dims["heads"] * dims["seq"] ** 2 * dims["head_dim"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws q, k, v float16[batch, heads, seq, head_dim]."""
        shape = tuple(workload.dims[axis] for axis in _AXES)
        q, k, v = (draw(shape, torch.float16, workload.distribution, generator) for _ in range(3))
        return {"q": q, "k": k, "v": v, **self.scalars(workload)}

    def oracle(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float
    ) -> tuple[torch.Tensor, ...]:
        """With the score matrices of a few heads at a time, in fp64."""
        return (self._attended(q, k, v, scale, softmax_attention, torch.float64),)

    def reference(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float
    ) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale),)

    def yardstick(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float
    ) -> tuple[torch.Tensor, ...]:
        """The reference, and weights that are rounded before they are divided by their sum."""
        (reference,) = self.reference(q, k, v, scale)
        return (farthest_attention(reference, partial(self._attended, q, k, v, scale)),)

    def _attended(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        scale: float,
        attend: Attention,
        dtype: torch.dtype,
    ) -> torch.Tensor:
        """Attends some heads at a time."""
        seq, step = q.shape[-2], max(1, SCORES // q.shape[-2] ** 2)
        later = torch.ones(seq, seq, dtype=torch.bool, device=q.device).triu(1)
        heads = (t.reshape(-1, seq, t.shape[-1]).split(step) for t in (q, k, v))
        out = []
        for queries, keys, values in zip(*heads, strict=True):
            scores = (queries.to(dtype) * scale) @ keys.to(dtype).mT
            out.append(attend(scores.masked_fill_(later, float("-inf")), values))
        return torch.cat(out).view(q.shape)

    def flops(self, dims: Dims) -> int:
        """Two products over the lower triangle of the scores, diagonal included."""
        batch, heads, seq, width = (dims[axis] for axis in _AXES)
        return 4 * batch * heads * width * (seq * (seq + 1) // 2)


PROBLEM = CausalAttention()
