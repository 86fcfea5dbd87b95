"""Rotary embedding with YaRN's frequencies at given positions, angles computed on the way."""

from __future__ import annotations

import math

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


class RopeYarn(Problem):
    """Rotates the pairs `(x[t, h, 2 i], x[t, h, 2 i + 1])` by `position[t] * frequency[i]`.

    The result is multiplied by `attention`, YaRN's temperature. Pairs are neighbours here.
    """

    name = "rope_yarn"
    summary = (
        "interleaved rotary embedding at given positions with scaled frequencies, times a factor"
    )
    category = "Fusion"
    level = 3
    tags = ("decoder-llm", "moe", "memory-bound")
    source = (
        "YaRN contexts of DeepSeek-V2 (rotary 64), Yarn-Llama-2-7B, Qwen2.5-7B, gpt-oss-20b (64)"
    )

    args = (
        TensorArg("x", torch.float16, shape="tokens, heads, head_dim"),
        TensorArg("position", torch.int32, shape="tokens"),
        TensorArg("frequency", torch.float32, shape="head_dim / 2"),
        ScalarArg("attention", float),
    )
    outputs = (Output("out", torch.float16, shape="tokens, heads, head_dim"),)
    axes = (
        Axis("tokens", 1, 1 << 20),
        Axis("heads", 1, 256),
        Axis("head_dim", 16, 256, multiple=16),
    )
    train = points(
        "tokens heads head_dim",
        full=[(8192, 16, 64), (4096, 32, 128), (4096, 28, 128), (8192, 64, 64)],
        sim=[(128, 16, 64), (48, 32, 128), (48, 28, 128), (40, 64, 64)],
    )
    production = points(
        "tokens heads head_dim",
        full=[(4096, 128, 64), (16384, 4, 128), (2048, 40, 128)],
        sim=[(24, 128, 64), (256, 4, 128), (32, 40, 96)],
    )
    adversarial = ({"tokens": 1, "heads": 3, "head_dim": 48},)
    distributions = ("normal", "uniform", "tiny", "large")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x and positions below 8192 in any order; context stretched 2 to 40 times.

        Frequencies by the paper (arXiv 2309.00071): those that turn more than 32 times over 4096
        positions stay, those that turn less than once are divided, between them a ramp.
        """
        tokens, heads, width = (workload.dims[axis.name] for axis in self.axes)
        stretch = 2 + 38 * float(torch.rand((), generator=generator))
        pitch = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
        ramp = ((4096 * pitch / (2 * math.pi) - 1) / 31).clamp(0, 1)
        return {
            "x": draw((tokens, heads, width), torch.float16, workload.distribution, generator),
            "position": torch.randint(0, 8192, (tokens,), generator=generator).int(),
            "frequency": (pitch * ramp + pitch / stretch * (1 - ramp)).float(),
            "attention": 0.1 * math.log(stretch) + 1,
        }

    def oracle(
        self,
        x: torch.Tensor,
        position: torch.Tensor,
        frequency: torch.Tensor,
        attention: float,
    ) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        angle = position.double()[:, None] * frequency.double()
        c, s = angle.cos()[:, None], angle.sin()[:, None]
        a, b = x.double()[..., 0::2], x.double()[..., 1::2]
        return (torch.stack([a * c - b * s, b * c + a * s], dim=-1).flatten(2) * attention,)

    def reference(
        self,
        x: torch.Tensor,
        position: torch.Tensor,
        frequency: torch.Tensor,
        attention: float,
    ) -> tuple[torch.Tensor, ...]:
        """Tables first, then the rotation, in float32."""
        angle = position.float()[:, None] * frequency
        c = (torch.cos(angle) * attention)[:, None, :]
        s = (torch.sin(angle) * attention)[:, None, :]
        pair = x.float().view(x.shape[0], x.shape[1], -1, 2)
        a, b = pair[..., 0], pair[..., 1]
        return (torch.stack([a * c - b * s, b * c + a * s], dim=-1).flatten(2).half(),)

    def flops(self, dims: Dims) -> int:
        """Two products, one addition and a scaling for each element."""
        return 4 * self.elements(dims)


PROBLEM = RopeYarn()
