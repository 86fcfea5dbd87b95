"""Sinusoidal embedding of diffusion timesteps."""

from __future__ import annotations

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


class TimestepEmbedding(Problem):
    """`out[i] = [cos(t[i] f), sin(t[i] f)]`, `f[j] = max_period^(-j / half)`, `half = dim / 2`."""

    name = "timestep_embedding"
    summary = "sinusoidal embedding of diffusion timesteps"
    category = "Math"
    level = 2
    tags = ("diffusion", "audio", "memory-bound")
    source = "DDPM U-Net, Stable Diffusion 1.5 and XL, DiT-XL, positions of Whisper and FLUX.1"

    args = (
        TensorArg("t", torch.float32, shape="rows"),
        ScalarArg("dim", int),
        ScalarArg("max_period", float, values=(1e4, 1e3, 1e5)),
    )
    outputs = (Output("out", torch.float16, shape="rows, 2 * half"),)
    axes = (Axis("rows", 1, 1 << 20), Axis("half", 1, 1 << 13))
    train = points(
        "rows half",
        full=[(65536, 128), (32768, 160), (32768, 640), (16384, 384), (131072, 64)],
        sim=[(512, 128), (400, 160), (128, 640), (1024, 64)],
    )
    production = points(
        "rows half",
        full=[(65536, 192), (49152, 512), (16384, 576)],
        sim=[(300, 192), (96, 512), (128, 576)],
    )
    adversarial = ({"rows": 3, "half": 1},)
    distributions = ("uniform", "normal", "sparse", "heavy_tail")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws t float32[rows], 0 to 1000; dim is 2 * half."""
        t = draw((workload.dims["rows"],), torch.float32, workload.distribution, generator)
        t = (t.abs() * 250).clamp(max=1000)
        return {"t": t, "dim": 2 * workload.dims["half"], **self.scalars(workload)}

    def output_shapes(self, dims: Dims) -> dict[str, tuple[int, ...]]:
        """A row of cosines, then sines, for each timestep."""
        return {"out": (dims["rows"], 2 * dims["half"])}

    def oracle(self, t: torch.Tensor, dim: int, max_period: float) -> tuple[torch.Tensor, ...]:
        """Angles in fp64."""
        j = torch.arange(dim // 2, dtype=torch.float64, device=t.device)
        angle = t.double()[:, None] * max_period ** (-j / (dim // 2))
        return (torch.cat([angle.cos(), angle.sin()], dim=1),)

    def reference(self, t: torch.Tensor, dim: int, max_period: float) -> tuple[torch.Tensor, ...]:
        """Angles in float32, as diffusion models write it."""
        half = dim // 2
        step = torch.log(torch.full((), max_period, device=t.device)) / half
        freqs = torch.exp(-step * torch.arange(half, dtype=torch.float32, device=t.device))
        angle = t[:, None] * freqs[None, :]
        return (torch.cat([torch.cos(angle), torch.sin(angle)], dim=-1).half(),)

    def bytes(self, dims: Dims) -> int:
        """Read t (4 bytes each), write out (2)."""
        return 4 * dims["rows"] + 4 * self.elements(dims)

    def flops(self, dims: Dims) -> int:
        """One product, one cosine and one sine an angle."""
        return 3 * self.elements(dims)


PROBLEM = TimestepEmbedding()
