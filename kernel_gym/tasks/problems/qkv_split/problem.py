"""Packed projections split into heads."""

from __future__ import annotations

import torch

from kernel_gym.tasks.distributions import draw
from kernel_gym.tasks.problem import (
    Axis,
    Check,
    Dims,
    Output,
    Problem,
    ScalarArg,
    TensorArg,
    Value,
    points,
)
from kernel_gym.tasks.workload import Workload


class QkvSplit(Problem):
    """Splits rows of query heads, then key heads, then value heads, of `head_dim` columns each.

    `q[head, t, :]`, `k[head, t, :]` and `v[head, t, :]` are the head's columns of `packed[t, :]`.
    """

    name = "qkv_split"
    summary = "packed heads of queries, keys and values to one matrix a head"
    category = "Random-and-layout"
    level = 2
    tags = ("decoder-llm", "moe", "memory-bound", "layout")
    source = "fused projections of Llama-3-8B, Qwen2.5-7B, Mixtral-8x7B, GPT-2, Falcon-7B"

    args = (
        TensorArg(
            "packed", torch.float16, shape="tokens, (num_heads + 2 * num_kv_heads) * head_dim"
        ),
        ScalarArg("num_heads", int),
        ScalarArg("num_kv_heads", int),
    )
    outputs = (
        Output("q", torch.float16, check=Check.EXACT, shape="num_heads, tokens, head_dim"),
        Output("k", torch.float16, check=Check.EXACT, shape="num_kv_heads, tokens, head_dim"),
        Output("v", torch.float16, check=Check.EXACT, shape="num_kv_heads, tokens, head_dim"),
    )
    axes = (
        Axis("tokens", 1, 1 << 20),
        Axis("num_heads", 1, 256),
        Axis("num_kv_heads", 1, 256),
        Axis("head_dim", 8, 512, multiple=8),
    )
    train = points(
        "tokens num_heads num_kv_heads head_dim",
        full=[
            (8192, 32, 8, 128),
            (8192, 28, 4, 128),
            (16384, 12, 12, 64),
            (8192, 71, 1, 64),
            (4096, 8, 1, 256),
        ],
        sim=[(24, 32, 8, 128), (32, 28, 4, 128), (64, 12, 12, 64), (24, 71, 1, 64)],
    )
    production = points(
        "tokens num_heads num_kv_heads head_dim",
        full=[(4096, 64, 8, 128), (8192, 40, 10, 128), (16384, 14, 2, 64)],
        sim=[(16, 64, 8, 128), (16, 40, 10, 128), (100, 14, 2, 64)],
    )
    adversarial = ({"tokens": 1, "num_heads": 3, "num_kv_heads": 2, "head_dim": 24},)
    distributions = ("normal", "range_ends", "structured", "tiny")

    def elements(self, dims: Dims) -> int:
        """Elements of the packed rows."""
        return dims["tokens"] * (dims["num_heads"] + 2 * dims["num_kv_heads"]) * dims["head_dim"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws the packed rows."""
        dims = workload.dims
        shape = (dims["tokens"], self.elements(dims) // dims["tokens"])
        return {
            "packed": draw(shape, torch.float16, workload.distribution, generator),
            "num_heads": dims["num_heads"],
            "num_kv_heads": dims["num_kv_heads"],
        }

    def oracle(
        self, packed: torch.Tensor, num_heads: int, num_kv_heads: int
    ) -> tuple[torch.Tensor, ...]:
        """Exact in any type."""
        heads = num_heads + 2 * num_kv_heads
        by_head = packed.double().reshape(packed.shape[0], heads, -1).transpose(0, 1)
        parts = by_head.split([num_heads, num_kv_heads, num_kv_heads])
        return tuple(part.contiguous() for part in parts)

    def reference(
        self, packed: torch.Tensor, num_heads: int, num_kv_heads: int
    ) -> tuple[torch.Tensor, ...]:
        """As attention modules write it: split, view, transpose, copy."""
        tokens, width = packed.shape
        head_dim = width // (num_heads + 2 * num_kv_heads)
        sizes = [num_heads * head_dim, num_kv_heads * head_dim, num_kv_heads * head_dim]
        q, k, v = torch.split(packed, sizes, dim=1)
        return (
            q.reshape(tokens, num_heads, head_dim).transpose(0, 1).contiguous(),
            k.reshape(tokens, num_kv_heads, head_dim).transpose(0, 1).contiguous(),
            v.reshape(tokens, num_kv_heads, head_dim).transpose(0, 1).contiguous(),
        )

    def flops(self, dims: Dims) -> int:
        """None."""
        return 0


PROBLEM = QkvSplit()
