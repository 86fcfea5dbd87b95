"""Kimi delta attention: the delta rule with a decay of its own for each key channel."""

from __future__ import annotations

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


class KdaRecurrence(Problem):
    """By batch and head: `S = diag(exp(g)) S`, `S += beta k (v - k S)`, `out = scale * q S`.

    k is a row of length 1, `k S` what the state holds for it before the correction; g is a row of
    the step with a decay for each channel of k, at most 0. S begins with zeros.
    """

    name = "kda_recurrence"
    summary = "gated delta rule with a decay by key channel, read by the scaled query"
    category = "Reduce-and-scan"
    level = 5
    tags = ("state-space", "decoder-llm", "sequential")
    source = "Kimi-Linear-48B-A3B (32 heads of 128), its 1.3B studies (16 heads of 128 and 64)"
    domain = "All inputs are finite. Each row of k has a length of 1 or is zero."
    fair_reference = False

    args = (
        TensorArg("q", torch.float16, shape="batch, seq, heads, head_dim"),
        TensorArg("k", torch.float16, shape="batch, seq, heads, head_dim"),
        TensorArg("v", torch.float16, shape="batch, seq, heads, head_dim"),
        TensorArg("g", torch.float32, shape="batch, seq, heads, head_dim"),
        TensorArg("beta", torch.float32, shape="batch, seq, heads"),
        ScalarArg("scale", float, values=(0.0884, 0.125, 1.0)),
    )
    outputs = (Output("out", torch.float16, shape="batch, seq, heads, head_dim"),)
    axes = (
        Axis("batch", 1, 256),
        Axis("seq", 1, 1 << 15),
        Axis("heads", 1, 128),
        Axis("head_dim", 16, 128, multiple=16),
    )
    train = points(
        "batch seq heads head_dim",
        full=[(2, 2048, 32, 128), (4, 1024, 16, 128), (1, 4096, 16, 64)],
        sim=[(1, 64, 2, 128), (2, 48, 3, 64), (1, 96, 4, 48)],
    )
    production = points(
        "batch seq heads head_dim",
        full=[(1, 8192, 32, 128), (8, 512, 16, 128), (16, 1000, 8, 96)],
        sim=[(1, 50, 3, 96), (1, 80, 2, 64), (3, 32, 2, 64)],
    )
    adversarial = (
        {"batch": 1, "seq": 1, "heads": 1, "head_dim": 16},
        {"batch": 2, "seq": 6, "heads": 3, "head_dim": 48},
    )
    distributions = ("normal", "uniform", "structured")

    def elements(self, dims: Dims) -> int:
        """Steps of the recurrence times the size of its state."""
        return dims["batch"] * dims["seq"] * dims["heads"] * dims["head_dim"] ** 2

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws q, k of length 1, v, g = log of decays in 0.5 .. 1, and beta in 0 .. 1."""
        shape, kind = tuple(workload.dims[axis.name] for axis in self.axes), workload.distribution
        q, k = (F.normalize(draw(shape, torch.float32, kind, generator), dim=3) for _ in range(2))
        decay = 1 - 0.5 * torch.rand(shape, generator=generator) ** 3
        return {
            "q": q.half(),
            "k": k.half(),
            "v": draw(shape, torch.float16, kind, generator),
            "g": decay.log(),
            "beta": torch.sigmoid(torch.randn(shape[:3], generator=generator)),
            **self.scalars(workload),
        }

    def oracle(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        g: torch.Tensor,
        beta: torch.Tensor,
        scale: float,
    ) -> tuple[torch.Tensor, ...]:
        """A step at a time, in fp64."""
        batch, seq, heads, width = q.shape
        state = torch.zeros(batch, heads, width, width, dtype=torch.float64, device=q.device)
        out = torch.empty(q.shape, dtype=torch.float64, device=q.device)
        for t in range(seq):
            key = k[:, t].double()[..., None]
            state = state * g[:, t].double().exp()[..., None]
            error = v[:, t].double() - (state * key).sum(2)
            state = state + key * (beta[:, t].double()[..., None] * error)[:, :, None, :]
            out[:, t] = scale * (state * q[:, t].double()[..., None]).sum(2)
        return (out,)

    def reference(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        g: torch.Tensor,
        beta: torch.Tensor,
        scale: float,
    ) -> tuple[torch.Tensor, ...]:
        """As the naive form of Kimi Linear writes it, in float32."""
        batch, seq, heads, width = q.shape
        state = torch.zeros(batch, heads, width, width, dtype=torch.float32, device=q.device)
        outs = []
        for t in range(seq):
            key = k[:, t].float()
            state = state * torch.exp(g[:, t])[:, :, :, None]
            held = torch.einsum("bhi,bhij->bhj", key, state)
            change = (v[:, t].float() - held) * beta[:, t, :, None]
            state = state + key[:, :, :, None] * change[:, :, None, :]
            outs.append(torch.einsum("bhi,bhij->bhj", q[:, t].float() * scale, state))
        return (torch.stack(outs, dim=1).half(),)

    def flops(self, dims: Dims) -> int:
        """For each entry of the state: 1 for the decay, 2 each to read, correct and read again."""
        return 7 * self.elements(dims)


PROBLEM = KdaRecurrence()
