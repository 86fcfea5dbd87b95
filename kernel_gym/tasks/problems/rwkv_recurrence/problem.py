"""The time mixing of RWKV-6: a matrix state with a decay of its own for each row and step."""

from __future__ import annotations

import torch

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


class RwkvRecurrence(Problem):
    """By batch and head, state S: `out = r (S + diag(u) k^T v)`, then `S = diag(w) S + k^T v`.

    r, k and w are rows of the step, u of the head; the newest pair counts by u, not yet by w.
    """

    name = "rwkv_recurrence"
    summary = "RWKV-6 time mixing: data-dependent decay by row and a bonus for the newest token"
    category = "Reduce-and-scan"
    level = 5
    tags = ("state-space", "decoder-llm", "sequential")
    source = "RWKV-6 World 1.6B, 3B, 7B and 14B (heads of 64)"
    fair_reference = False

    args = (
        TensorArg("r", torch.float16, shape="batch, seq, heads, 64"),
        TensorArg("k", torch.float16, shape="batch, seq, heads, 64"),
        TensorArg("v", torch.float16, shape="batch, seq, heads, 64"),
        TensorArg("w", torch.float32, shape="batch, seq, heads, 64"),
        TensorArg("u", torch.float32, shape="heads, 64"),
    )
    outputs = (Output("out", torch.float16, shape="batch, seq, heads, 64"),)
    axes = (Axis("batch", 1, 256), Axis("seq", 1, 1 << 15), Axis("heads", 1, 128))
    train = points(
        "batch seq heads",
        full=[(4, 1024, 32), (2, 2048, 40), (1, 2048, 64)],
        sim=[(1, 96, 4), (2, 50, 3), (1, 128, 2)],
    )
    production = points(
        "batch seq heads",
        full=[(8, 512, 40), (1, 4096, 32), (16, 300, 32)],
        sim=[(1, 64, 5), (3, 40, 2), (2, 77, 2)],
    )
    adversarial = ({"batch": 1, "seq": 1, "heads": 1},)
    distributions = ("normal", "uniform", "structured")
    tiny_inputs = False

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws r / 8, k, v float16, decays w = exp(-exp(x)) with x in -6 .. 0, and u."""
        batch, seq, heads = (workload.dims[axis.name] for axis in self.axes)
        shape, kind = (batch, seq, heads, WIDTH), workload.distribution
        r = draw(shape, torch.float32, kind, generator) / 8
        x = -6 * torch.rand(shape, generator=generator)
        return {
            "r": r.half(),
            "k": draw(shape, torch.float16, kind, generator),
            "v": draw(shape, torch.float16, kind, generator),
            "w": torch.exp(-torch.exp(x)),
            "u": torch.randn(heads, WIDTH, generator=generator),
        }

    def oracle(
        self,
        r: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        w: torch.Tensor,
        u: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """A step at a time, in fp64."""
        batch, seq, heads, width = r.shape
        state = torch.zeros(batch, heads, width, width, dtype=torch.float64, device=r.device)
        out = torch.empty(r.shape, dtype=torch.float64, device=r.device)
        for t in range(seq):
            pair = k[:, t].double()[..., None] * v[:, t].double()[:, :, None, :]
            read = state + u.double()[..., None] * pair
            out[:, t] = (r[:, t].double()[..., None] * read).sum(2)
            state = w[:, t].double()[..., None] * state + pair
        return (out,)

    def reference(
        self,
        r: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        w: torch.Tensor,
        u: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """As RWKV's reference writes it, in float32."""
        batch, seq, heads, width = r.shape
        state = torch.zeros(batch, heads, width, width, dtype=torch.float32, device=r.device)
        outs = []
        for t in range(seq):
            pair = k[:, t].float()[:, :, :, None] @ v[:, t].float()[:, :, None, :]
            read = r[:, t].float()[:, :, None, :] @ (state + u[:, :, None] * pair)
            outs.append(read[:, :, 0])
            state = w[:, t][:, :, :, None] * state + pair
        return (torch.stack(outs, dim=1).half(),)

    def flops(self, dims: Dims) -> int:
        """For each entry of the state: 3 for the update, 2 for the output."""
        return 5 * WIDTH**2 * self.elements(dims)


PROBLEM = RwkvRecurrence()
