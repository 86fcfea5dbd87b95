"""Gated linear attention: a matrix state with a decay of its own for each key channel."""

from __future__ import annotations

import math

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


class GlaRecurrence(Problem):
    """By batch and head, with a state S: `S = diag(exp(g)) S + k^T v`, then `out = scale * q S`.

    g, k and q are rows of the step with `key` channels, v a row with `value` channels. S begins
    with zeros. g is at most 0.
    """

    name = "gla_recurrence"
    summary = "gated linear attention: decay by key channel, outer-product update, read by query"
    category = "Reduce-and-scan"
    level = 5
    tags = ("state-space", "decoder-llm", "sequential")
    source = "GLA-1.3B (4 heads, keys 256 and values 512), GLA-340M, HGRN2-1.3B"
    domain = "All inputs are finite. g may be 0, so that nothing decays."
    fair_reference = False

    args = (
        TensorArg("q", torch.float16, shape="batch, seq, heads, key"),
        TensorArg("k", torch.float16, shape="batch, seq, heads, key"),
        TensorArg("v", torch.float16, shape="batch, seq, heads, value"),
        TensorArg("g", torch.float32, shape="batch, seq, heads, key"),
        ScalarArg("scale", float, values=(0.125, 0.0625, 0.2)),
    )
    outputs = (Output("out", torch.float16, shape="batch, seq, heads, value"),)
    axes = (
        Axis("batch", 1, 256),
        Axis("seq", 1, 1 << 15),
        Axis("heads", 1, 128),
        Axis("key", 16, 256, multiple=16),
        Axis("value", 16, 512, multiple=16),
    )
    train = points(
        "batch seq heads key value",
        full=[(8, 2048, 4, 256, 512), (8, 1024, 4, 128, 256), (2, 4096, 16, 128, 128)],
        sim=[(1, 64, 2, 64, 128), (2, 48, 2, 48, 96), (1, 80, 3, 64, 64)],
    )
    production = points(
        "batch seq heads key value",
        full=[(4, 4096, 4, 128, 256), (32, 512, 4, 256, 512), (1, 8000, 16, 128, 128)],
        sim=[(1, 96, 2, 32, 64), (3, 24, 2, 64, 128), (1, 120, 4, 48, 48)],
    )
    adversarial = (
        {"batch": 1, "seq": 1, "heads": 1, "key": 16, "value": 16},
        {"batch": 2, "seq": 5, "heads": 3, "key": 16, "value": 48},
    )
    distributions = ("normal", "uniform", "structured")
    tiny_inputs = False

    def elements(self, dims: Dims) -> int:
        """Steps of the recurrence times the size of its state."""
        return math.prod(dims[axis.name] for axis in self.axes)

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws q, k and v by the distribution, and g = log sigmoid / 16 as in GLA, a tenth 0."""
        batch, seq, heads, key, value = (workload.dims[axis.name] for axis in self.axes)
        shape, kind = (batch, seq, heads), workload.distribution
        gate = F.logsigmoid(3 * torch.randn((*shape, key), generator=generator)) / 16
        still = torch.rand((*shape, key), generator=generator) < 0.1
        return {
            "q": draw((*shape, key), torch.float16, kind, generator),
            "k": draw((*shape, key), torch.float16, kind, generator),
            "v": draw((*shape, value), torch.float16, kind, generator),
            "g": gate.masked_fill(still, 0.0),
            **self.scalars(workload),
        }

    def oracle(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, g: torch.Tensor, scale: float
    ) -> tuple[torch.Tensor, ...]:
        """A step at a time, in fp64."""
        batch, seq, heads, key = q.shape
        state = torch.zeros(batch, heads, key, v.shape[3], dtype=torch.float64, device=q.device)
        out = torch.empty(v.shape, dtype=torch.float64, device=q.device)
        for t in range(seq):
            state = state * g[:, t].double().exp()[..., None]
            state = state + k[:, t].double()[..., None] * v[:, t].double()[:, :, None, :]
            out[:, t] = scale * (state * q[:, t].double()[..., None]).sum(2)
        return (out,)

    def reference(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, g: torch.Tensor, scale: float
    ) -> tuple[torch.Tensor, ...]:
        """As the naive form of flash-linear-attention writes it, in float32."""
        batch, seq, heads, key = q.shape
        state = torch.zeros(batch, heads, key, v.shape[3], dtype=torch.float32, device=q.device)
        outs = []
        for t in range(seq):
            pair = k[:, t].float()[:, :, :, None] * v[:, t].float()[:, :, None, :]
            state = state * torch.exp(g[:, t])[:, :, :, None] + pair
            outs.append(torch.einsum("bhi,bhij->bhj", q[:, t].float() * scale, state))
        return (torch.stack(outs, dim=1).half(),)

    def flops(self, dims: Dims) -> int:
        """For each entry of the state: 3 for the update and 2 for the output."""
        return 5 * self.elements(dims)


PROBLEM = GlaRecurrence()
