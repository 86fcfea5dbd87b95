"""RMS norm of query and key heads fused with their rotary embedding."""

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


class QkNormRope(Problem):
    """Each head is normalised, `y = x / sqrt(mean(x^2) + eps) * weight`, then rotated by halves.

    `[a, b]` of y becomes `[a cos - b sin, b cos + a sin]` with the angles of the token.
    """

    name = "qk_norm_rope"
    summary = "RMS norm by head and rotary embedding of queries and keys in one pass"
    category = "Fusion"
    level = 3
    tags = ("decoder-llm", "moe", "diffusion", "memory-bound")
    source = (
        "heads of Qwen3-8B (32 and 8 of 128), Qwen3-30B-A3B, Gemma-3-4B (8 and 4 of 256), OLMo-2"
    )

    args = (
        TensorArg("q", torch.float16, shape="tokens, q_heads, head_dim"),
        TensorArg("k", torch.float16, shape="tokens, k_heads, head_dim"),
        TensorArg("q_weight", torch.float16, shape="head_dim"),
        TensorArg("k_weight", torch.float16, shape="head_dim"),
        TensorArg("cos", torch.float32, shape="tokens, head_dim / 2"),
        TensorArg("sin", torch.float32, shape="tokens, head_dim / 2"),
        ScalarArg("eps", float, values=(1e-5, 1e-3, 1e-6, 1e-2)),
    )
    outputs = (
        Output("q_out", torch.float16, shape="tokens, q_heads, head_dim"),
        Output("k_out", torch.float16, shape="tokens, k_heads, head_dim"),
    )
    axes = (
        Axis("tokens", 1, 1 << 20),
        Axis("q_heads", 1, 128),
        Axis("k_heads", 1, 128),
        Axis("head_dim", 16, 256, multiple=16),
    )
    train = points(
        "tokens q_heads k_heads head_dim",
        full=[(8192, 32, 8, 128), (16384, 32, 4, 128), (8192, 8, 4, 256), (4096, 24, 24, 128)],
        sim=[(48, 32, 8, 128), (64, 32, 4, 128), (64, 8, 4, 256), (32, 24, 24, 128)],
    )
    production = points(
        "tokens q_heads k_heads head_dim",
        full=[(8192, 16, 8, 128), (4096, 64, 8, 128), (16384, 4, 1, 256)],
        sim=[(64, 16, 8, 128), (24, 64, 8, 128), (128, 4, 1, 256)],
    )
    adversarial = ({"tokens": 1, "q_heads": 3, "k_heads": 1, "head_dim": 48},)
    distributions = ("normal", "heavy_tail", "tiny", "large")

    def elements(self, dims: Dims) -> int:
        """Elements of q and k."""
        return dims["tokens"] * (dims["q_heads"] + dims["k_heads"]) * dims["head_dim"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws q, k, weights around 1, and angles of consecutive positions."""
        tokens, q_heads, k_heads, width = (workload.dims[axis.name] for axis in self.axes)
        kind = workload.distribution
        first = int(torch.randint(0, 4096, (), generator=generator))
        position = torch.arange(first, first + tokens, dtype=torch.float64)
        pitch = 1e6 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
        angle = position[:, None] * pitch
        weights = (1 + 0.3 * torch.randn(2, width, generator=generator)).half()
        return {
            "q": draw((tokens, q_heads, width), torch.float16, kind, generator),
            "k": draw((tokens, k_heads, width), torch.float16, kind, generator),
            "q_weight": weights[0].clone(),
            "k_weight": weights[1].clone(),
            "cos": angle.cos().float(),
            "sin": angle.sin().float(),
            **self.scalars(workload),
        }

    def oracle(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        q_weight: torch.Tensor,
        k_weight: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
        eps: float,
    ) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        c, s = cos.double()[:, None], sin.double()[:, None]
        outs = []
        for x, weight in ((q.double(), q_weight.double()), (k.double(), k_weight.double())):
            y = x * torch.rsqrt(x.square().mean(2, keepdim=True) + eps) * weight
            a, b = y.chunk(2, dim=2)
            outs.append(torch.cat([a * c - b * s, b * c + a * s], dim=2))
        return tuple(outs)

    def reference(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        q_weight: torch.Tensor,
        k_weight: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
        eps: float,
    ) -> tuple[torch.Tensor, ...]:
        """As Qwen3 writes it: norm in float32, rotation by rotate_half."""
        c = torch.cat([cos, cos], dim=1)[:, None, :]
        s = torch.cat([sin, sin], dim=1)[:, None, :]
        outs = []
        for x, weight in ((q, q_weight), (k, k_weight)):
            wide = x.float()
            unit = wide * torch.rsqrt(wide.pow(2).mean(dim=2, keepdim=True) + eps)
            y = (weight * unit.half()).float()
            a, b = y.chunk(2, dim=2)
            outs.append((y * c + torch.cat([-b, a], dim=2) * s).half())
        return tuple(outs)

    def flops(self, dims: Dims) -> int:
        """Square and sum 2, scale 2, rotate 3 for each element."""
        return 7 * self.elements(dims)


PROBLEM = QkNormRope()
