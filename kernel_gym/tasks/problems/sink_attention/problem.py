"""Sliding-window attention with a sink for each head."""

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


class SinkAttention(Problem):
    """Query i sees keys j with `i - window < j <= i`, and a sink that has a score but no value.

    `out[i] = sum_j exp(s_j) v_j / (exp(sink[h]) + sum_j exp(s_j))` with `s_j = scale * q_i . k_j`.
    Query head h uses key and value head `h // group`. `window` is at least 1 and may exceed seq.
    Scores may exceed 88, where exp overflows in float32.
    """

    name = "sink_attention"
    summary = (
        "causal grouped attention over a window, with a learned sink in the softmax's denominator"
    )
    category = "Attention"
    level = 4
    tags = ("decoder-llm", "moe", "compute-bound")
    source = "heads of gpt-oss-20b and gpt-oss-120b (64 query and 8 key heads of 64, window 128)"

    args = (
        TensorArg("q", torch.bfloat16, shape="batch, kv_heads * group, seq, head_dim"),
        TensorArg("k", torch.bfloat16, shape="batch, kv_heads, seq, head_dim"),
        TensorArg("v", torch.bfloat16, shape="batch, kv_heads, seq, head_dim"),
        TensorArg("sink", torch.float32, shape="kv_heads * group"),
        ScalarArg("window", int, values=(128, 24, 48, 300)),
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
        full=[(1, 8, 8, 4096, 64), (2, 8, 8, 2048, 64), (1, 4, 8, 4096, 64), (4, 8, 8, 1024, 64)],
        sim=[(1, 1, 8, 96, 64), (1, 2, 2, 160, 64), (2, 1, 4, 96, 64), (1, 1, 2, 256, 64)],
    )
    production = points(
        "batch kv_heads group seq head_dim",
        full=[
            (1, 8, 8, 8192, 64),
            (8, 2, 8, 1024, 64),
            (2, 8, 8, 3000, 64),
            (1, 8, 4, 4096, 128),
            (16, 8, 8, 512, 64),
        ],
        sim=[
            (1, 1, 8, 128, 64),
            (4, 1, 2, 96, 64),
            (1, 1, 3, 197, 64),
            (1, 1, 4, 96, 128),
            (2, 2, 2, 100, 64),
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
            "sink": 2 * torch.randn(kv_heads * group, generator=generator),
            **self.scalars(workload),
        }

    def oracle(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        sink: torch.Tensor,
        window: int,
        scale: float,
    ) -> tuple[torch.Tensor, ...]:
        """With the score matrix of one head at a time, in fp64."""
        seq, group = q.shape[2], q.shape[1] // k.shape[1]
        place = torch.arange(seq, device=q.device)
        out = torch.empty(q.shape, dtype=torch.float64, device=q.device)
        for b, h in itertools.product(range(q.shape[0]), range(q.shape[1])):
            scores = q[b, h].double() @ k[b, h // group].double().mT * scale
            scores = scores.masked_fill(
                (place[None, :] > place[:, None]) | (place[None, :] <= place[:, None] - window),
                float("-inf"),
            )
            top = scores.amax(-1, keepdim=True).clamp(min=float(sink[h]))
            weights = torch.exp(scores - top)
            total = weights.sum(-1, keepdim=True) + torch.exp(sink[h].double() - top)
            out[b, h] = weights @ v[b, h // group].double() / total
        return (out,)

    def reference(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        sink: torch.Tensor,
        window: int,
        scale: float,
    ) -> tuple[torch.Tensor, ...]:
        """Operator by operator; scores in float32, weights rounded before the second product."""
        group, seq = q.shape[1] // k.shape[1], q.shape[2]
        keys, values = (t.repeat_interleave(group, dim=1) for t in (k, v))
        far = torch.arange(seq, device=q.device)
        far = far[:, None] - far[None, :]
        scores = torch.matmul(q.float(), keys.float().mT) * scale
        scores = scores.masked_fill((far < 0) | (far >= window), float("-inf"))
        sinks = sink[None, :, None, None].expand(q.shape[0], -1, seq, 1)
        weights = torch.softmax(torch.cat((scores, sinks), dim=-1), dim=-1)[..., :-1]
        return (torch.matmul(weights.to(q.dtype), values),)

    def yardstick(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        sink: torch.Tensor,
        window: int,
        scale: float,
    ) -> tuple[torch.Tensor, ...]:
        """The reference, and weights that are rounded before they are divided by their sum."""
        group, seq = q.shape[1] // k.shape[1], q.shape[2]
        keys, values = (t.repeat_interleave(group, dim=1) for t in (k, v))
        far = torch.arange(seq, device=q.device)
        far = far[:, None] - far[None, :]
        scores = torch.matmul(q.float(), keys.float().mT) * scale
        scores = scores.masked_fill((far < 0) | (far >= window), float("-inf"))
        sinks = sink[None, :, None, None].expand(q.shape[0], -1, seq, 1)
        last = divided_last(torch.cat((scores, sinks), dim=-1), values)
        (oracle,) = self.oracle(q, k, v, sink, window, scale)
        return (farthest(oracle, (*self.reference(q, k, v, sink, window, scale), last)),)

    def flops(self, dims: Dims) -> int:
        """Two products over the diagonal of the scores, the least that any window holds."""
        batch, kv_heads, group, seq, width = (dims[axis.name] for axis in self.axes)
        return 4 * batch * kv_heads * group * width * seq


PROBLEM = SinkAttention()
