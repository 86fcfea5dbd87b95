"""The state-space recurrence of Mamba-2 (SSD)."""

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


class Mamba2Ssd(Problem):
    """By batch and head: `S = exp(dt a) S + dt x b^T`, then `out = S c + d x`.

    S has a row for each of the head's `width` channels and a column for each of `states`; it begins
    with zeros. dt is a number of the step and head, a and d of the head; head h uses the rows b and
    c of group `h // (heads / groups)`.
    """

    name = "mamba2_ssd"
    summary = "Mamba-2 scan: scalar decay by head, outer-product update, read by c, skip by d"
    category = "Reduce-and-scan"
    level = 5
    tags = ("state-space", "decoder-llm", "sequential")
    source = "Mamba-2 130M to 2.7B (24 to 80 heads of 64, 128 states), Zamba2-7B, Nemotron-H-8B"
    domain = "All inputs are finite; dt is positive, a negative."

    args = (
        TensorArg("x", torch.float16, shape="batch, seq, groups * share, width"),
        TensorArg("dt", torch.float32, shape="batch, seq, groups * share"),
        TensorArg("a", torch.float32, shape="groups * share"),
        TensorArg("b", torch.float16, shape="batch, seq, groups, states"),
        TensorArg("c", torch.float16, shape="batch, seq, groups, states"),
        TensorArg("d", torch.float32, shape="groups * share"),
    )
    outputs = (Output("out", torch.float16, shape="batch, seq, groups * share, width"),)
    axes = (
        Axis("batch", 1, 256),
        Axis("seq", 1, 1 << 15),
        Axis("groups", 1, 16),
        Axis("share", 1, 128),
        Axis("width", 16, 128, multiple=16),
        Axis("states", 16, 256, multiple=16),
    )
    train = points(
        "batch seq groups share width states",
        full=[(4, 2048, 1, 80, 64, 128), (8, 1024, 1, 24, 64, 128), (1, 4096, 8, 16, 64, 128)],
        sim=[(1, 96, 1, 4, 64, 64), (2, 48, 1, 3, 32, 128), (1, 70, 2, 2, 64, 48)],
    )
    production = points(
        "batch seq groups share width states",
        full=[(2, 2048, 2, 56, 64, 64), (1, 8192, 1, 48, 64, 128), (16, 512, 1, 32, 64, 128)],
        sim=[(2, 64, 2, 2, 64, 32), (1, 150, 1, 2, 64, 64), (4, 32, 1, 2, 48, 64)],
    )
    adversarial = (
        {"batch": 1, "seq": 1, "groups": 1, "share": 1, "width": 16, "states": 16},
        {"batch": 2, "seq": 5, "groups": 2, "share": 3, "width": 48, "states": 16},
    )
    distributions = ("normal", "uniform", "structured")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x by the distribution, steps of 1e-3 to 0.3, decays of -1 to -16, b, c and d."""
        batch, seq, groups, share, width, states = (workload.dims[a.name] for a in self.axes)
        heads = groups * share
        step = 1e-3 * 300 ** torch.rand((batch, seq, heads), generator=generator)
        b, c = (torch.randn((batch, seq, groups, states), generator=generator) for _ in range(2))
        return {
            "x": draw((batch, seq, heads, width), torch.float16, workload.distribution, generator),
            "dt": step,
            "a": -1 - 15 * torch.rand(heads, generator=generator),
            "b": b.half(),
            "c": (c * states**-0.5).half(),
            "d": torch.randn(heads, generator=generator),
        }

    def oracle(
        self,
        x: torch.Tensor,
        dt: torch.Tensor,
        a: torch.Tensor,
        b: torch.Tensor,
        c: torch.Tensor,
        d: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """A step at a time, in fp64."""
        batch, seq, heads, width = x.shape
        share = heads // b.shape[2]
        state = torch.zeros(batch, heads, width, b.shape[3], dtype=torch.float64, device=x.device)
        out = torch.empty(x.shape, dtype=torch.float64, device=x.device)
        for t in range(seq):
            step, new = dt[:, t].double(), x[:, t].double()
            key, read = (m[:, t].double().repeat_interleave(share, dim=1) for m in (b, c))
            state = state * (step * a.double()).exp()[..., None, None]
            state = state + (step[..., None] * new)[..., None] * key[:, :, None, :]
            out[:, t] = (state * read[:, :, None, :]).sum(3) + d.double()[:, None] * new
        return (out,)

    def reference(
        self,
        x: torch.Tensor,
        dt: torch.Tensor,
        a: torch.Tensor,
        b: torch.Tensor,
        c: torch.Tensor,
        d: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """In chunks of 64 steps, as the minimal form of the Mamba-2 paper, in float32."""
        seq, heads = x.shape[1:3]
        share, pad = heads // b.shape[2], -seq % 64

        def chunks(tensor: torch.Tensor) -> torch.Tensor:
            last = (0, 0) * (tensor.dim() - 2)
            return F.pad(tensor, (*last, 0, pad)).unflatten(1, (-1, 64))

        u = chunks(x.float() * dt[..., None])
        sums = torch.cumsum(chunks(dt * a), dim=2)
        key = chunks(b.float()).repeat_interleave(share, dim=3)
        read = chunks(c.float()).repeat_interleave(share, dim=3)
        gap = sums[:, :, :, None] - sums[:, :, None, :]
        place = torch.arange(64, device=x.device)
        later = (place > place[:, None])[:, :, None]
        decay = torch.exp(gap.masked_fill(later, float("-inf")))
        scores = torch.einsum("bzihn,bzjhn->bzijh", read, key) * decay
        out = torch.einsum("bzijh,bzjhp->bzihp", scores, u)
        left = torch.exp(sums[:, :, -1:] - sums)
        added = torch.einsum("bzjhn,bzjhp->bzhpn", key, u * left[..., None])
        state, before = torch.zeros_like(added[:, 0]), []
        for z in range(added.shape[1]):
            before.append(state)
            state = state * torch.exp(sums[:, z, -1])[:, :, None, None] + added[:, z]
        old = torch.einsum("bzihn,bzhpn->bzihp", read, torch.stack(before, dim=1))
        out = (out + old * torch.exp(sums)[..., None]).flatten(1, 2)[:, :seq]
        return ((out + d[:, None] * x.float()).half(),)

    def flops(self, dims: Dims) -> int:
        """For each entry of the state: 3 for the update and 2 for the output."""
        return 5 * self.elements(dims)


PROBLEM = Mamba2Ssd()
