"""Attention of one new token a sequence to a paged fp8 cache."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from kernel_gym.tasks.distributions import draw, draw_lengths
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


class Fp8KvDecode(Problem):
    """`softmax(scale * q k^T) v` by head, over the first `length[b]` keys of sequence b.

    Key j of sequence b is row `j % 16` of page `table[b, j // 16]` of `k_cache`, times `k_scale`;
    values alike, times `v_scale`. Query head h uses key head `h // group`. Lengths are from 1 to 16
    * pages; entries of the table beyond a sequence's last page may be any page. Scores may exceed
    88, where exp overflows in float32.
    """

    name = "fp8_kv_decode"
    summary = "one-token attention to a paged fp8 (e4m3fnuz) KV cache with one scale for each cache"
    category = "Attention"
    level = 5
    tags = ("decoder-llm", "moe", "memory-bound", "ragged", "gather", "fp8")
    source = "decode of Llama-3-8B (8 x 4 heads), Llama-3-70B, Qwen2.5-7B (4 x 7) with an fp8 cache"

    args = (
        TensorArg("q", torch.bfloat16, shape="batch, kv_heads * group, head_dim"),
        TensorArg("k_cache", torch.float8_e4m3fnuz, shape="batch * pages, 16, kv_heads, head_dim"),
        TensorArg("v_cache", torch.float8_e4m3fnuz, shape="batch * pages, 16, kv_heads, head_dim"),
        TensorArg("table", torch.int32, shape="batch, pages"),
        TensorArg("length", torch.int32, shape="batch"),
        ScalarArg("k_scale", float, values=(0.025, 0.0125, 0.05)),
        ScalarArg("v_scale", float, values=(0.025, 0.04, 0.015)),
        ScalarArg("scale", float, values=(0.0884, 0.125, 0.2)),
    )
    outputs = (Output("out", torch.bfloat16, shape="batch, kv_heads * group, head_dim"),)
    axes = (
        Axis("batch", 1, 1024),
        Axis("kv_heads", 1, 64),
        Axis("group", 1, 16),
        Axis("pages", 1, 1 << 12),
        Axis("head_dim", 64, 128, multiple=64),
    )
    train = points(
        "batch kv_heads group pages head_dim",
        full=[
            (32, 8, 4, 256, 128),
            (16, 4, 7, 512, 128),
            (16, 8, 8, 256, 128),
            (64, 2, 7, 128, 64),
        ],
        sim=[(3, 2, 4, 16, 128), (3, 1, 7, 32, 128), (6, 1, 8, 12, 64), (8, 2, 3, 6, 64)],
    )
    production = points(
        "batch kv_heads group pages head_dim",
        full=[
            (64, 8, 8, 64, 128),
            (4, 8, 4, 2048, 128),
            (128, 2, 6, 64, 128),
            (8, 1, 16, 1024, 128),
        ],
        sim=[(6, 1, 8, 8, 128), (1, 2, 4, 40, 64), (8, 2, 6, 4, 64), (2, 1, 16, 12, 64)],
    )
    adversarial = (
        {"batch": 1, "kv_heads": 1, "group": 1, "pages": 1, "head_dim": 64},
        {"batch": 2, "kv_heads": 2, "group": 3, "pages": 3, "head_dim": 64},
    )
    distributions = ("normal", "uniform", "large", "structured")

    def elements(self, dims: Dims) -> int:
        """Entries of the scores times head_dim."""
        heads = dims["kv_heads"] * dims["group"]
        return dims["batch"] * heads * dims["pages"] * 16 * dims["head_dim"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws q by the distribution, normal codes, pages in random order, lengths and scales."""
        batch, kv_heads, group, pages, width = (workload.dims[a.name] for a in self.axes)
        q = draw((batch, kv_heads * group, width), torch.float32, workload.distribution, generator)
        if workload.distribution == "large":
            q = q / 32
        pool = (batch * pages, 16, kv_heads, width)
        k, v = (
            (40 * torch.randn(pool, generator=generator)).clamp(-240, 240).to(torch.float8_e4m3fnuz)
            for _ in range(2)
        )
        return {
            "q": q.bfloat16(),
            "k_cache": k,
            "v_cache": v,
            "table": torch.randperm(batch * pages, generator=generator).view(batch, pages).int(),
            "length": draw_lengths(batch, 16 * pages, generator),
            **self.scalars(workload),
        }

    def oracle(
        self,
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        table: torch.Tensor,
        length: torch.Tensor,
        k_scale: float,
        v_scale: float,
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
            queries = q[b].double().view(kv_heads, -1, width) * (scale * k_scale)
            weights = torch.softmax(torch.einsum("hgd,khd->hgk", queries, k), dim=-1)
            out[b] = torch.einsum("hgk,khd->hgd", weights, v).reshape(-1, width) * v_scale
        return (out,)

    def reference(
        self,
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        table: torch.Tensor,
        length: torch.Tensor,
        k_scale: float,
        v_scale: float,
        scale: float,
    ) -> tuple[torch.Tensor, ...]:
        """The pages gathered and widened, then one PyTorch call with a mask."""
        at = table.long()
        k = k_cache.view(torch.uint8)[at].view(k_cache.dtype).to(q.dtype).flatten(1, 2)
        v = v_cache.view(torch.uint8)[at].view(v_cache.dtype).to(q.dtype).flatten(1, 2)
        place = torch.arange(k.shape[1], device=q.device)
        visible = (place < length[:, None])[:, None, None, :]
        out = F.scaled_dot_product_attention(
            q[:, :, None, :],
            k.transpose(1, 2),
            v.transpose(1, 2),
            attn_mask=visible,
            scale=scale * k_scale,
            enable_gqa=True,
        )
        return ((out[:, :, 0, :] * v_scale).contiguous(),)

    def bytes(self, dims: Dims) -> int:
        """Reads q, the lengths and one key of each sequence, the least there is; writes out."""
        batch, kv_heads, group, _, width = (dims[axis.name] for axis in self.axes)
        return batch * (4 * kv_heads * group * width + 2 * kv_heads * width + 8)

    def flops(self, dims: Dims) -> int:
        """Two products with one key of each sequence, the least there is."""
        return 4 * dims["batch"] * dims["kv_heads"] * dims["group"] * dims["head_dim"]


PROBLEM = Fp8KvDecode()
