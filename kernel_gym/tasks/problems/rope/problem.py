"""Rotary position embedding of one projection."""

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


class Rope(Problem):
    """Rotates the pairs `(x[t, h, i], x[t, h, i + head_dim / 2])` by the angle of token t."""

    name = "rope"
    summary = "rotary embedding, half-split: [a, b] -> [a cos - b sin, b cos + a sin] per head"
    category = "Fusion"
    level = 2
    tags = ("decoder-llm", "moe", "memory-bound")
    source = "attention heads of Llama-2-7B, Llama-3-8B, Phi-3-mini, GPT-NeoX, Gemma-2B"

    args = (
        TensorArg("x", torch.float16, shape="tokens, heads, head_dim"),
        TensorArg("cos", torch.float32, shape="tokens, head_dim / 2"),
        TensorArg("sin", torch.float32, shape="tokens, head_dim / 2"),
    )
    outputs = (Output("out", torch.float16, shape="tokens, heads, head_dim"),)
    axes = (
        Axis("tokens", 1, 1 << 20),
        Axis("heads", 1, 256),
        Axis("head_dim", 16, 256, multiple=16),
    )
    train = points(
        "tokens heads head_dim",
        full=[(4096, 32, 128), (8192, 8, 128), (4096, 32, 96), (4096, 64, 64), (2048, 8, 256)],
        sim=[(64, 32, 128), (128, 8, 128), (64, 32, 96), (32, 64, 64)],
    )
    production = points(
        "tokens heads head_dim",
        full=[(4096, 40, 128), (8192, 14, 64), (2048, 64, 128)],
        sim=[(48, 40, 128), (192, 14, 64), (96, 8, 256)],
    )
    adversarial = ({"tokens": 1, "heads": 3, "head_dim": 48},)
    distributions = ("normal", "offset", "tiny", "large")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x; cos and sin belong to consecutive positions from a random one on."""
        tokens, heads, width = (workload.dims[a] for a in ("tokens", "heads", "head_dim"))
        x = draw((tokens, heads, width), torch.float16, workload.distribution, generator)
        first = int(torch.randint(0, 4096, (), generator=generator))
        position = torch.arange(first, first + tokens, dtype=torch.float64)
        pitch = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
        angle = position[:, None] * pitch
        return {"x": x, "cos": angle.cos().float(), "sin": angle.sin().float()}

    def oracle(
        self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """The rotation of each pair."""
        a, b = x.double().chunk(2, dim=-1)
        c, s = cos.double()[:, None, :], sin.double()[:, None, :]
        return (torch.cat([a * c - b * s, b * c + a * s], dim=-1),)

    def reference(
        self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """As decoder models write it: `x * cos + rotate_half(x) * sin`, in float32."""
        wide = x.float()
        a, b = wide.chunk(2, dim=-1)
        rotated = torch.cat([-b, a], dim=-1)
        c = torch.cat([cos, cos], dim=-1)[:, None, :]
        s = torch.cat([sin, sin], dim=-1)[:, None, :]
        return ((wide * c + rotated * s).half(),)

    def flops(self, dims: Dims) -> int:
        """Two products and one addition for each element."""
        return 3 * self.elements(dims)


PROBLEM = Rope()
