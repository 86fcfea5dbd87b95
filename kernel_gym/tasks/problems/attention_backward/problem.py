"""Gradients of attention from saved log-sum-exps."""

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


class AttentionBackward(Problem):
    """Gradients of `out = p v`, `p = exp(scale * q k^T - lse)`, with respect to q, k and v.

    `dv = p^T dout`, `ds = p * (dout v^T - delta)` with `delta[i] = sum over c of dout[i, c] *
    out[i, c]`, `dq = scale * ds k` and `dk = scale * ds^T q`, by batch and head. If `causal` is 1,
    p[i, j] is zero for j > i. p, ds and dout v^T may be rounded to float16 before they are used.
    """

    name = "attention_backward"
    summary = "gradients of q, k and v of bidirectional or causal attention"
    category = "Attention"
    level = 5
    tags = ("decoder-llm", "vision", "training", "compute-bound")
    source = "training of Llama-3-8B, GPT-2 (12 x 64), BERT-large and ViT-L/16 by heads"
    domain = (
        "All inputs are finite, and out and lse are those of q, k and v. Scores may exceed 88, "
        "where exp overflows in float32."
    )

    args = (
        TensorArg("q", torch.float16, shape="batch, heads, seq, head_dim"),
        TensorArg("k", torch.float16, shape="batch, heads, seq, head_dim"),
        TensorArg("v", torch.float16, shape="batch, heads, seq, head_dim"),
        TensorArg("out", torch.float16, shape="batch, heads, seq, head_dim"),
        TensorArg("dout", torch.float16, shape="batch, heads, seq, head_dim"),
        TensorArg("lse", torch.float32, shape="batch, heads, seq"),
        ScalarArg("scale", float, values=(0.125, 0.0884, 0.2)),
        ScalarArg("causal", int, values=(1, 0)),
    )
    outputs = (
        Output("dq", torch.float16, shape="batch, heads, seq, head_dim"),
        Output("dk", torch.float16, shape="batch, heads, seq, head_dim"),
        Output("dv", torch.float16, shape="batch, heads, seq, head_dim"),
    )
    axes = (
        Axis("batch", 1, 256),
        Axis("heads", 1, 128),
        Axis("seq", 2, 1 << 14),
        Axis("head_dim", 64, 128, multiple=64),
    )
    train = points(
        "batch heads seq head_dim",
        full=[(1, 32, 2048, 128), (8, 12, 1024, 64), (16, 16, 512, 64), (2, 16, 2048, 128)],
        sim=[(1, 2, 128, 128), (1, 3, 160, 64), (2, 2, 96, 64), (1, 1, 256, 64)],
    )
    production = points(
        "batch heads seq head_dim",
        full=[(2, 32, 1024, 128), (32, 16, 197, 64), (1, 40, 2048, 128), (4, 25, 1024, 64)],
        sim=[(1, 3, 96, 128), (2, 2, 99, 64), (1, 1, 200, 128), (1, 5, 64, 64)],
    )
    adversarial = (
        {"batch": 2, "heads": 1, "seq": 2, "head_dim": 64},
        {"batch": 1, "heads": 3, "seq": 33, "head_dim": 64},
    )
    distributions = ("normal", "wide", "structured", "uniform")
    exchangeable = False

    def elements(self, dims: Dims) -> int:
        """Entries of the score matrices times head_dim, the measure of its cost."""
        return dims["batch"] * dims["heads"] * dims["seq"] ** 2 * dims["head_dim"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws q, k, v and dout by the distribution; out and lse by the forward pass in fp64."""
        shape, kind = tuple(workload.dims[axis.name] for axis in self.axes), workload.distribution
        chosen = self.scalars(workload)
        calm = "normal" if kind == "wide" else kind
        q, k, v, dout = (draw(shape, torch.float16, calm, generator) for _ in range(4))
        if kind == "wide":  # scores around 100 that differ little, so that gradients do not vanish
            q, k = q + 2, k + 6
        out, lse = torch.empty_like(v), torch.empty(shape[:3])
        place = torch.arange(shape[2])
        hidden = (place > place[:, None]) & bool(chosen["causal"])
        for at in itertools.product(range(shape[0]), range(shape[1])):
            scores = (q[at].double() @ k[at].double().mT * chosen["scale"]).masked_fill(
                hidden, float("-inf")
            )
            lse[at] = torch.logsumexp(scores, dim=1).float()
            out[at] = (torch.softmax(scores, dim=1) @ v[at].double()).half()
        return {"q": q, "k": k, "v": v, "out": out, "dout": dout, "lse": lse, **chosen}

    def oracle(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        out: torch.Tensor,
        dout: torch.Tensor,
        lse: torch.Tensor,
        scale: float,
        causal: int,
    ) -> tuple[torch.Tensor, ...]:
        """Head by head, in fp64."""
        grads = [torch.empty(q.shape, dtype=torch.float64, device=q.device) for _ in range(3)]
        place = torch.arange(q.shape[2], device=q.device)
        hidden = (place > place[:, None]) & bool(causal)
        for at in itertools.product(range(q.shape[0]), range(q.shape[1])):
            a, b, c, up = (tensor[at].double() for tensor in (q, k, v, dout))
            p = torch.exp(a @ b.mT * scale - lse[at].double()[:, None]).masked_fill(hidden, 0.0)
            delta = (up * out[at].double()).sum(1, keepdim=True)
            ds = p * (up @ c.mT - delta) * scale
            for grad, value in zip(grads, (ds @ b, ds.mT @ a, p.mT @ up), strict=True):
                grad[at] = value
        return tuple(grads)

    def reference(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        out: torch.Tensor,
        dout: torch.Tensor,
        lse: torch.Tensor,
        scale: float,
        causal: int,
    ) -> tuple[torch.Tensor, ...]:
        """The scores and their gradients in float32, the other three products in float16."""
        scores = torch.matmul(q.float(), k.float().mT) * scale
        p = torch.exp(scores - lse[..., None])
        if causal:
            p = torch.tril(p)
        delta = (dout.float() * out.float()).sum(dim=3, keepdim=True)
        dv = torch.matmul(p.half().mT, dout)
        dp = torch.matmul(dout.float(), v.float().mT)
        ds = (p * (dp - delta) * scale).half()
        return torch.matmul(ds, k), torch.matmul(ds.mT, q), dv

    def yardstick(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        out: torch.Tensor,
        dout: torch.Tensor,
        lse: torch.Tensor,
        scale: float,
        causal: int,
    ) -> tuple[torch.Tensor, ...]:
        """With dout v^T rounded to float16, as PyTorch's product of float16 matrices does."""
        p = torch.exp(torch.matmul(q.float(), k.float().mT) * scale - lse[..., None])
        if causal:
            p = torch.tril(p)
        delta = (dout.float() * out.float()).sum(dim=3, keepdim=True)
        dv = torch.matmul(p.half().mT, dout)
        ds = (p * (torch.matmul(dout, v.mT).float() - delta) * scale).half()
        return torch.matmul(ds, k), torch.matmul(ds.mT, q), dv

    def flops(self, dims: Dims) -> int:
        """Five products over the lower triangle of the scores, diagonal included."""
        batch, heads, seq, width = (dims[axis.name] for axis in self.axes)
        return 10 * batch * heads * width * (seq * (seq + 1) // 2)


PROBLEM = AttentionBackward()
