"""Selective scan: the state-space recurrence of Mamba."""

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

STATE = 16


class SelectiveScan(Problem):
    """For each channel d with a state h of 16: `h = exp(dt a[d]) h + dt b[t] u[t]`.

    `dt = softplus(delta[t] + bias[d])`, and `out[t] = c[t] . h + skip[d] u[t]`.
    """

    name = "selective_scan"
    summary = "Mamba's recurrence over time with input-dependent steps, by channel, state of 16"
    category = "Reduce-and-scan"
    level = 5
    tags = ("state-space", "memory-bound", "sequential")
    source = "Mamba-130M, 790M, 2.8B, Falcon-Mamba-7B and Vision Mamba (inner widths, by device)"
    fair_reference = False

    args = (
        TensorArg("u", torch.float16, shape="batch, channels, seq"),
        TensorArg("delta", torch.float16, shape="batch, channels, seq"),
        TensorArg("a", torch.float32, shape="channels, 16"),
        TensorArg("b", torch.float16, shape="batch, 16, seq"),
        TensorArg("c", torch.float16, shape="batch, 16, seq"),
        TensorArg("skip", torch.float32, shape="channels"),
        TensorArg("bias", torch.float32, shape="channels"),
    )
    outputs = (Output("out", torch.float16, shape="batch, channels, seq"),)
    axes = (Axis("batch", 1, 256), Axis("channels", 1, 1 << 14), Axis("seq", 1, 1 << 15))
    train = points(
        "batch channels seq",
        full=[(4, 5120, 2048), (8, 3072, 1024), (2, 8192, 2048), (64, 768, 197)],
        sim=[(1, 160, 96), (2, 96, 64), (1, 256, 64), (4, 48, 50)],
    )
    production = points(
        "batch channels seq",
        full=[(16, 1536, 1024), (1, 4096, 4096), (32, 384, 577)],
        sim=[(1, 96, 128), (2, 64, 80), (3, 48, 72)],
    )
    adversarial = ({"batch": 1, "channels": 3, "seq": 1}, {"batch": 2, "channels": 1, "seq": 17})
    distributions = ("normal", "uniform", "heavy_tail", "structured")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws u and delta by the distribution; a = -1 .. -16 with some noise; bias around -3."""
        batch, channels, seq = (workload.dims[axis.name] for axis in self.axes)
        kind = workload.distribution
        noise = torch.rand(channels, STATE, generator=generator)
        b, c = (torch.randn(batch, STATE, seq, generator=generator).half() for _ in range(2))
        return {
            "u": draw((batch, channels, seq), torch.float16, kind, generator),
            "delta": draw((batch, channels, seq), torch.float32, kind, generator)
            .clamp(-8, 8)
            .half(),
            "a": -torch.arange(1.0, STATE + 1) * (0.5 + noise),
            "b": b,
            "c": c,
            "skip": torch.randn(channels, generator=generator),
            "bias": torch.randn(channels, generator=generator) - 3,
        }

    def oracle(
        self,
        u: torch.Tensor,
        delta: torch.Tensor,
        a: torch.Tensor,
        b: torch.Tensor,
        c: torch.Tensor,
        skip: torch.Tensor,
        bias: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """A step at a time, in fp64."""
        steps = F.softplus(delta.double() + bias.double()[:, None], threshold=700.0)
        x, wide_b, wide_c = u.double(), b.double(), c.double()
        state = torch.zeros(*u.shape[:2], STATE, dtype=torch.float64, device=u.device)
        out = torch.empty_like(x)
        for t in range(u.shape[2]):
            step = steps[:, :, t, None]
            state = torch.exp(step * a.double()) * state
            state += step * x[:, :, t, None] * wide_b[:, None, :, t]
            out[:, :, t] = (state * wide_c[:, None, :, t]).sum(2)
        return (out + skip.double()[:, None] * x,)

    def reference(
        self,
        u: torch.Tensor,
        delta: torch.Tensor,
        a: torch.Tensor,
        b: torch.Tensor,
        c: torch.Tensor,
        skip: torch.Tensor,
        bias: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """As Mamba's reference writes it: decays and inputs at once, then a loop, in float32."""
        x = u.float()
        steps = F.softplus(delta.float() + bias[:, None])
        decay = torch.exp(torch.einsum("bds,dn->bdsn", steps, a))
        fed = torch.einsum("bds,bns,bds->bdsn", steps, b.float(), x)
        state = torch.zeros_like(decay[:, :, 0])
        outs = []
        for t in range(u.shape[2]):
            state = decay[:, :, t] * state + fed[:, :, t]
            outs.append(torch.einsum("bdn,bn->bd", state, c[:, :, t].float()))
        return ((torch.stack(outs, dim=2) + skip[:, None] * x).half(),)

    def flops(self, dims: Dims) -> int:
        """For each step and state: 2 for the decay, 3 for the update, 2 for the output."""
        return 7 * STATE * self.elements(dims)


PROBLEM = SelectiveScan()
