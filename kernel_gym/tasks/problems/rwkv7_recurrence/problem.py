"""The time mixing of RWKV-7: a delta rule with a decay of its own for each key channel."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from kernel_gym.tasks.distributions import draw
from kernel_gym.tasks.problem import (
    Axis,
    Dims,
    Output,
    Problem,
    TensorArg,
    Value,
    points,
)
from kernel_gym.tasks.workload import Workload

WIDTH = 64


class Rwkv7Recurrence(Problem):
    """By batch and head, with rows as vectors: `S = S diag(w) + (S a) b^T + v k^T`, `out = S r`.

    S has a row for each channel of v and a column for each channel of k; it begins with zeros.
    `(S a)` is taken before the decay. w lies in 0 .. 1.
    """

    name = "rwkv7_recurrence"
    summary = "RWKV-7 time mixing: decay by channel, a rank-one correction, a new pair, a read"
    category = "Reduce-and-scan"
    level = 5
    tags = ("state-space", "decoder-llm", "sequential")
    source = "RWKV-7 Goose 0.4B, 1.5B and 2.9B (16, 32 and 40 heads of 64)"
    fair_reference = False

    args = (
        TensorArg("r", torch.float16, shape="batch, seq, heads, 64"),
        TensorArg("w", torch.float32, shape="batch, seq, heads, 64"),
        TensorArg("k", torch.float16, shape="batch, seq, heads, 64"),
        TensorArg("v", torch.float16, shape="batch, seq, heads, 64"),
        TensorArg("a", torch.float16, shape="batch, seq, heads, 64"),
        TensorArg("b", torch.float16, shape="batch, seq, heads, 64"),
    )
    outputs = (Output("out", torch.float16, shape="batch, seq, heads, 64"),)
    axes = (Axis("batch", 1, 256), Axis("seq", 1, 1 << 15), Axis("heads", 1, 128))
    train = points(
        "batch seq heads",
        full=[(8, 1024, 16), (4, 2048, 32), (2, 2048, 40)],
        sim=[(1, 96, 4), (2, 50, 3), (1, 128, 2)],
    )
    production = points(
        "batch seq heads",
        full=[(16, 512, 12), (1, 4096, 64), (16, 300, 32)],
        sim=[(1, 64, 5), (3, 40, 2), (2, 77, 2)],
    )
    adversarial = ({"batch": 1, "seq": 1, "heads": 1}, {"batch": 2, "seq": 9, "heads": 3})
    distributions = ("normal", "uniform", "structured")
    tiny_inputs = False
    exchangeable = False

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws r, k / 8 and v, decays as in RWKV-7, a of length 1 and b = -a times a rate."""
        batch, seq, heads = (workload.dims[axis.name] for axis in self.axes)
        shape, kind = (batch, seq, heads, WIDTH), workload.distribution
        unit = F.normalize(draw(shape, torch.float32, kind, generator), dim=3)
        rate = torch.sigmoid(torch.randn(shape, generator=generator))
        decay = torch.exp(-0.606531 * torch.sigmoid(torch.randn(shape, generator=generator)))
        return {
            "r": draw(shape, torch.float16, kind, generator),
            "w": decay,
            "k": (draw(shape, torch.float32, kind, generator) / 8).half(),
            "v": draw(shape, torch.float16, kind, generator),
            "a": -unit.half(),
            "b": (unit * rate).half(),
        }

    def oracle(
        self,
        r: torch.Tensor,
        w: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        a: torch.Tensor,
        b: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """A step at a time, in fp64."""
        batch, seq, heads, width = r.shape
        state = torch.zeros(batch, heads, width, width, dtype=torch.float64, device=r.device)
        out = torch.empty(r.shape, dtype=torch.float64, device=r.device)
        for t in range(seq):
            held = (state * a[:, t].double()[:, :, None, :]).sum(3)
            state = state * w[:, t].double()[:, :, None, :]
            state = state + held[..., None] * b[:, t].double()[:, :, None, :]
            state = state + v[:, t].double()[..., None] * k[:, t].double()[:, :, None, :]
            out[:, t] = (state * r[:, t].double()[:, :, None, :]).sum(3)
        return (out,)

    def reference(
        self,
        r: torch.Tensor,
        w: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        a: torch.Tensor,
        b: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """As RWKV's reference writes it, in float32."""
        batch, seq, heads, width = r.shape
        state = torch.zeros(batch, heads, width, width, dtype=torch.float32, device=r.device)
        outs = []
        for t in range(seq):
            held = state @ a[:, t].float()[:, :, :, None]
            state = state * w[:, t][:, :, None, :] + held @ b[:, t].float()[:, :, None, :]
            state = state + v[:, t].float()[:, :, :, None] @ k[:, t].float()[:, :, None, :]
            outs.append((state @ r[:, t].float()[:, :, :, None])[:, :, :, 0])
        return (torch.stack(outs, dim=1).half(),)

    def flops(self, dims: Dims) -> int:
        """For each entry of the state: 2 to read, 5 to update, 2 to read again."""
        return 9 * WIDTH**2 * self.elements(dims)


PROBLEM = Rwkv7Recurrence()
