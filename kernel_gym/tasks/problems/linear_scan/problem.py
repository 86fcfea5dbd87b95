"""Gated linear recurrence over time."""

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


class LinearScan(Problem):
    """`h[t] = a[t] h[t - 1] + x[t]` for each channel, from `h[-1] = start`."""

    name = "linear_scan"
    summary = (
        "h[:, t] = a[:, t] * h[:, t - 1] + x[:, t] by channel, h before the first step is start"
    )
    category = "Reduce-and-scan"
    level = 4
    tags = ("state-space", "decoder-llm", "memory-bound", "scan")
    source = "RG-LRU layers of RecurrentGemma-2B and 9B, minGRU, QRNN language models"
    fair_reference = False

    args = (
        TensorArg("a", torch.float16, shape="batch, time, channels"),
        TensorArg("x", torch.float16, shape="batch, time, channels"),
        TensorArg("start", torch.float16, shape="batch, channels"),
    )
    outputs = (Output("h", torch.float16, shape="batch, time, channels"),)
    axes = (Axis("batch", 1, 4096), Axis("time", 1, 1 << 16), Axis("channels", 1, 1 << 14))
    train = points(
        "batch time channels",
        full=[(4, 2048, 2560), (2, 4096, 4096), (1, 8192, 2560), (32, 512, 1024), (64, 256, 2048)],
        sim=[(1, 64, 2560), (1, 48, 4096), (2, 256, 256), (8, 32, 512)],
    )
    production = points(
        "batch time channels",
        full=[(8, 1024, 2560), (1, 16384, 1024), (16, 1024, 1536)],
        sim=[(1, 100, 1536), (4, 128, 256), (1, 512, 256)],
    )
    adversarial = ({"batch": 2, "time": 1, "channels": 3},)
    distributions = ("normal", "uniform", "offset", "sparse")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws gates a between 0 and 0.98, x by the distribution and a normal start."""
        batch, time, channels = (workload.dims[axis.name] for axis in self.axes)
        gate = torch.randn((batch, time, channels), generator=generator)
        x = draw((batch, time, channels), torch.float16, workload.distribution, generator)
        start = torch.randn((batch, channels), generator=generator)
        return {"a": (0.98 * torch.sigmoid(2 * gate + 1)).half(), "x": x, "start": start.half()}

    def oracle(
        self, a: torch.Tensor, x: torch.Tensor, start: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Step by step in fp64."""
        h, steps = start.double(), []
        for t in range(x.shape[1]):
            h = a[:, t].double() * h + x[:, t].double()
            steps.append(h)
        return (torch.stack(steps, dim=1),)

    def reference(
        self, a: torch.Tensor, x: torch.Tensor, start: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """A scan by doubling, in float32: what PyTorch can do without a loop over time."""
        gate, state = a.float(), x.float()
        state = torch.cat(
            [state[:, :1] + gate[:, :1] * start.float()[:, None], state[:, 1:]], dim=1
        )
        reach = 1
        while reach < x.shape[1]:
            later = state[:, reach:] + gate[:, reach:] * state[:, :-reach]
            state = torch.cat([state[:, :reach], later], dim=1)
            gate = torch.cat([gate[:, :reach], gate[:, reach:] * gate[:, :-reach]], dim=1)
            reach *= 2
        return (state.half(),)

    def flops(self, dims: Dims) -> int:
        """A product and an addition a step."""
        return 2 * self.elements(dims)


PROBLEM = LinearScan()
