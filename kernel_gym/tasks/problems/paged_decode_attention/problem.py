"""Attention of one new token a sequence to keys and values kept in pages."""

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

PAGE = 16


class PagedDecodeAttention(Problem):
    """`softmax(scale * q k^T) v` by head, over the first `length[b]` keys of sequence b.

    Key j of sequence b is row `j % 16` of page `table[b, j // 16]`; `group` query heads share one
    key and value head.
    """

    name = "paged_decode_attention"
    summary = "one-token attention to a paged KV cache with ragged lengths and grouped heads"
    category = "Attention"
    level = 5
    tags = ("decoder-llm", "moe", "memory-bound", "ragged", "gather")
    source = "decode of Llama-3-8B (8 x 4 heads), Qwen2.5-7B (4 x 7), Llama-2-7B and Qwen2.5-0.5B"
    domain = (
        "All floating-point inputs are finite. Each length is at least 1 and fits the "
        "pages of its row."
    )

    args = (
        TensorArg("q", torch.float16, shape="batch, kv_heads * group, head_dim"),
        TensorArg("k_cache", torch.float16, shape="batch * pages, 16, kv_heads, head_dim"),
        TensorArg("v_cache", torch.float16, shape="batch * pages, 16, kv_heads, head_dim"),
        TensorArg("table", torch.int32, shape="batch, pages"),
        TensorArg("length", torch.int32, shape="batch"),
        ScalarArg("scale", float, values=(0.125, 0.0884, 0.25, 0.05)),
    )
    outputs = (Output("out", torch.float16, shape="batch, kv_heads * group, head_dim"),)
    axes = (
        Axis("batch", 1, 1024),
        Axis("kv_heads", 1, 64),
        Axis("group", 1, 16),
        Axis("pages", 1, 1 << 13),
        Axis("head_dim", 64, 128, multiple=64),
    )
    train = points(
        "batch kv_heads group pages head_dim",
        full=[
            (32, 8, 4, 128, 128),
            (16, 4, 7, 256, 128),
            (8, 32, 1, 128, 128),
            (64, 2, 7, 128, 64),
        ],
        sim=[(4, 2, 4, 8, 128), (3, 1, 7, 16, 128), (4, 4, 1, 8, 64), (8, 2, 7, 6, 64)],
    )
    production = points(
        "batch kv_heads group pages head_dim",
        full=[(64, 8, 8, 64, 128), (4, 8, 4, 1024, 128), (128, 2, 6, 64, 128)],
        sim=[(6, 1, 8, 8, 128), (1, 2, 4, 32, 128), (8, 2, 6, 4, 128)],
    )
    adversarial = ({"batch": 1, "kv_heads": 1, "group": 1, "pages": 1, "head_dim": 64},)
    distributions = ("normal", "uniform", "structured", "wide")

    def elements(self, dims: Dims) -> int:
        """Entries of the scores times head_dim."""
        heads = dims["kv_heads"] * dims["group"]
        return dims["batch"] * heads * dims["pages"] * PAGE * dims["head_dim"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws q and caches float16, pages in random order, lengths from half to all of them.

        One length of several may be shorter, down to 1.
        """
        batch, kv_heads, group, pages, width = (workload.dims[a.name] for a in self.axes)
        kind = workload.distribution
        pool = (batch * pages, PAGE, kv_heads, width)
        full = pages * PAGE
        length = torch.randint(full // 2, full + 1, (batch,), generator=generator)
        if batch > 1:
            one = int(torch.randint(0, batch, (), generator=generator))
            length[one] = torch.randint(1, full + 1, (), generator=generator) ** 2 // full + 1
        length = length.clamp(1, full).int()
        return {
            "q": draw((batch, kv_heads * group, width), torch.float16, kind, generator),
            "k_cache": draw(pool, torch.float16, kind, generator),
            "v_cache": draw(pool, torch.float16, kind, generator),
            "table": torch.randperm(batch * pages, generator=generator).view(batch, pages).int(),
            "length": length,
            **self.scalars(workload),
        }

    def oracle(
        self,
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        table: torch.Tensor,
        length: torch.Tensor,
        scale: float,
    ) -> tuple[torch.Tensor, ...]:
        """Sequence by sequence, in fp64."""
        kv_heads, width = k_cache.shape[2:]
        out = torch.empty(q.shape, dtype=torch.float64, device=q.device)
        for b, count in enumerate(length.tolist()):
            k, v = (
                cache[table[b].long()].double().reshape(-1, kv_heads, width)[:count]
                for cache in (k_cache, v_cache)
            )
            queries = q[b].double().view(kv_heads, -1, width)
            weights = torch.softmax(torch.einsum("hgd,khd->hgk", queries, k) * scale, dim=-1)
            out[b] = torch.einsum("hgk,khd->hgd", weights, v).reshape(-1, width)
        return (out,)

    def reference(
        self,
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        table: torch.Tensor,
        length: torch.Tensor,
        scale: float,
    ) -> tuple[torch.Tensor, ...]:
        """The pages gathered, then one PyTorch call with a mask."""
        k = k_cache[table.long()].flatten(1, 2).transpose(1, 2)
        v = v_cache[table.long()].flatten(1, 2).transpose(1, 2)
        place = torch.arange(k.shape[2], device=q.device)
        visible = (place < length[:, None])[:, None, None, :]
        out = F.scaled_dot_product_attention(
            q[:, :, None, :], k, v, attn_mask=visible, scale=scale, enable_gqa=True
        )
        return (out[:, :, 0, :].contiguous(),)

    def bytes(self, dims: Dims) -> int:
        """Read q, length, the least of keys, values and table that lengths allow, write out."""
        batch, kv_heads, group, pages, width = (dims[axis.name] for axis in self.axes)
        keys, long = pages * PAGE // 2, max(1, batch - 1)
        short = batch - long
        queries = batch * (4 * width * kv_heads * group + 4)
        states = 4 * width * kv_heads * (long * keys + short)
        return queries + states + 4 * (long * -(-keys // PAGE) + short)

    def flops(self, dims: Dims) -> int:
        """Two products over the least number of keys."""
        batch, kv_heads, group, pages, width = (dims[axis.name] for axis in self.axes)
        long = max(1, batch - 1)
        keys = long * (pages * PAGE // 2) + batch - long
        return 4 * kv_heads * group * keys * width


PROBLEM = PagedDecodeAttention()
