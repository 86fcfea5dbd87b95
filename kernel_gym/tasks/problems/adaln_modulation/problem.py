"""Adaptive layer norm: normalised tokens shifted and scaled by their image's condition."""

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


class AdalnModulation(Problem):
    """`out[b, t] = layer_norm(x[b, t]) * (1 + scale[b]) + shift[b]`, without learnt weights."""

    name = "adaln_modulation"
    summary = "layer_norm(x) * (1 + scale) + shift with scale and shift of each image"
    category = "Fusion"
    level = 2
    tags = ("diffusion", "vision", "memory-bound")
    source = "DiT-XL/2 (1152 wide, 256 tokens), SD3-medium (1536), FLUX.1 (3072), PixArt (1152)"

    args = (
        TensorArg("x", torch.float16, shape="batch, tokens, channels"),
        TensorArg("shift", torch.float16, shape="batch, channels"),
        TensorArg("scale", torch.float16, shape="batch, channels"),
        ScalarArg("eps", float, values=(1e-5, 1e-3, 1e-6, 1e-2)),
    )
    outputs = (Output("out", torch.float16, shape="batch, tokens, channels"),)
    axes = (Axis("batch", 1, 512), Axis("tokens", 1, 1 << 15), Axis("channels", 2, 1 << 13))
    train = points(
        "batch tokens channels",
        full=[(64, 256, 1152), (8, 4096, 1536), (2, 4608, 3072), (32, 1024, 1152)],
        sim=[(4, 32, 1152), (2, 64, 1536), (1, 48, 3072), (8, 16, 1152)],
    )
    production = points(
        "batch tokens channels",
        full=[(128, 256, 384), (16, 1178, 1536), (4, 1024, 3072)],
        sim=[(8, 48, 384), (2, 49, 1536), (2, 16, 3072)],
    )
    adversarial = ({"batch": 2, "tokens": 1, "channels": 2},)
    distributions = ("normal", "tiny", "heavy_tail", "large")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x by the distribution, shift and scale normal, all float16."""
        batch, tokens, channels = (workload.dims[axis.name] for axis in self.axes)
        x = draw((batch, tokens, channels), torch.float16, workload.distribution, generator)
        shift, scale = (torch.randn(batch, channels, generator=generator) for _ in range(2))
        return {
            "x": x,
            "shift": shift.half(),
            "scale": (0.5 * scale).half(),
            **self.scalars(workload),
        }

    def oracle(
        self, x: torch.Tensor, shift: torch.Tensor, scale: torch.Tensor, eps: float
    ) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        wide = x.double()
        centred = wide - wide.mean(2, keepdim=True)
        unit = centred / torch.sqrt(centred.square().mean(2, keepdim=True) + eps)
        return (unit * (1 + scale.double()[:, None]) + shift.double()[:, None],)

    def reference(
        self, x: torch.Tensor, shift: torch.Tensor, scale: torch.Tensor, eps: float
    ) -> tuple[torch.Tensor, ...]:
        """As DiT writes it."""
        unit = F.layer_norm(x, (x.shape[2],), eps=eps)
        return (unit * (1 + scale[:, None]) + shift[:, None],)

    def flops(self, dims: Dims) -> int:
        """Mean 1, centre 1, square and sum 2, normalise 1, modulate 2 for each element."""
        return 7 * self.elements(dims)


PROBLEM = AdalnModulation()
