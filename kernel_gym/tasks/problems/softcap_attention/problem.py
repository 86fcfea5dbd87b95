"""Causal attention with capped scores."""

from __future__ import annotations

import itertools

import torch

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
from kernel_gym.tasks.yardsticks import divided_last, farthest


class SoftcapAttention(Problem):
    """`softmax(cap * tanh(scale * q k^T / cap)) v`, query i sees keys 0 .. i.

    Query head h uses key and value head `h // group`. `cap` is positive. The scores before the cap
    may exceed it many times. Everything between the products is computed in float32.
    """

    name = "softcap_attention"
    summary = (
        "causal grouped attention, bfloat16, whose scores pass through cap * tanh(score / cap)"
    )
    category = "Attention"
    level = 4
    tags = ("decoder-llm", "compute-bound")
    source = "heads of Gemma-2-9B and Gemma-2-27B (cap 50) and Grok-1 (cap 30), by device"

    args = (
        TensorArg("q", torch.bfloat16, shape="batch, kv_heads * group, seq, head_dim"),
        TensorArg("k", torch.bfloat16, shape="batch, kv_heads, seq, head_dim"),
        TensorArg("v", torch.bfloat16, shape="batch, kv_heads, seq, head_dim"),
        ScalarArg("cap", float, values=(50.0, 30.0, 20.0)),
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
            (1, 8, 2, 4096, 128),
            (2, 16, 2, 2048, 128),
            (1, 8, 6, 2048, 128),
            (4, 4, 2, 1024, 64),
        ],
        sim=[(1, 1, 2, 192, 64), (2, 2, 2, 96, 64), (1, 1, 6, 96, 128), (1, 1, 2, 256, 64)],
    )
    production = points(
        "batch kv_heads group seq head_dim",
        full=[
            (1, 8, 2, 3000, 128),
            (8, 4, 2, 1024, 128),
            (1, 16, 2, 4096, 128),
            (2, 8, 6, 1024, 128),
            (4, 1, 4, 2048, 64),
        ],
        sim=[
            (1, 1, 2, 197, 128),
            (2, 1, 2, 128, 64),
            (1, 2, 2, 160, 64),
            (1, 1, 6, 130, 64),
            (2, 1, 4, 96, 64),
        ],
    )
    adversarial = (
        {"batch": 1, "kv_heads": 1, "group": 1, "seq": 1, "head_dim": 64},
        {"batch": 1, "kv_heads": 2, "group": 3, "seq": 33, "head_dim": 64},
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
            **self.scalars(workload),
        }

    def oracle(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cap: float, scale: float
    ) -> tuple[torch.Tensor, ...]:
        """With the score matrix of one head at a time, in fp64."""
        seq, group = q.shape[2], q.shape[1] // k.shape[1]
        place = torch.arange(seq, device=q.device)
        out = torch.empty(q.shape, dtype=torch.float64, device=q.device)
        for b, h in itertools.product(range(q.shape[0]), range(q.shape[1])):
            scores = cap * torch.tanh(
                (q[b, h].double() @ k[b, h // group].double().mT * scale) / cap
            )
            scores = scores.masked_fill(place[None, :] > place[:, None], float("-inf"))
            out[b, h] = torch.softmax(scores, dim=-1) @ v[b, h // group].double()
        return (out,)

    def reference(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cap: float, scale: float
    ) -> tuple[torch.Tensor, ...]:
        """Operator by operator; scores in float32, weights rounded before the second product."""
        group, seq = q.shape[1] // k.shape[1], q.shape[2]
        keys, values = (t.repeat_interleave(group, dim=1) for t in (k, v))
        scores = torch.tanh(torch.matmul(q.float(), keys.float().mT) * (scale / cap)) * cap
        later = torch.ones(seq, seq, dtype=torch.bool, device=q.device).triu(1)
        weights = torch.softmax(scores.masked_fill(later, float("-inf")), dim=-1)
        return (torch.matmul(weights.to(q.dtype), values),)

    def yardstick(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cap: float, scale: float
    ) -> tuple[torch.Tensor, ...]:
        """The reference, and weights that are rounded before they are divided by their sum."""
        group, seq = q.shape[1] // k.shape[1], q.shape[2]
        keys, values = (t.repeat_interleave(group, dim=1) for t in (k, v))
        scores = torch.tanh(torch.matmul(q.float(), keys.float().mT) * (scale / cap)) * cap
        later = torch.ones(seq, seq, dtype=torch.bool, device=q.device).triu(1)
        last = divided_last(scores.masked_fill(later, float("-inf")), values)
        (oracle,) = self.oracle(q, k, v, cap, scale)
        return (farthest(oracle, (*self.reference(q, k, v, cap, scale), last)),)

    def flops(self, dims: Dims) -> int:
        """Two products over the lower triangle of the scores, diagonal included."""
        batch, kv_heads, group, seq, width = (dims[axis.name] for axis in self.axes)
        return 4 * batch * kv_heads * group * width * (seq * (seq + 1) // 2)


PROBLEM = SoftcapAttention()
