"""Attention of one new token a sequence to an int8 cache of keys and values."""

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


class Int8KvDecode(Problem):
    """`softmax(scale * q k^T) v` by head, over the first `length[b]` keys of sequence b.

    Keys and values are codes times scales: `k = k_code * k_scale` with one scale for each head of
    each token, and v alike. Query head h uses key head `h // group`. Lengths are from 1 to keys.
    Scores may exceed 88, where exp overflows in float32.
    """

    name = "int8_kv_decode"
    summary = "one-token attention to int8 keys and values with a scale for each head of each token"
    category = "Attention"
    level = 4
    tags = ("decoder-llm", "moe", "memory-bound", "ragged", "int8")
    source = (
        "decode of Llama-3-8B (8 x 4 heads), Qwen2.5-7B (4 x 7) and Llama-2-7B with an int8 cache"
    )

    args = (
        TensorArg("q", torch.float16, shape="batch, kv_heads * group, head_dim"),
        TensorArg("k_code", torch.int8, shape="batch, keys, kv_heads, head_dim"),
        TensorArg("k_scale", torch.float32, shape="batch, keys, kv_heads"),
        TensorArg("v_code", torch.int8, shape="batch, keys, kv_heads, head_dim"),
        TensorArg("v_scale", torch.float32, shape="batch, keys, kv_heads"),
        TensorArg("length", torch.int32, shape="batch"),
        ScalarArg("scale", float, values=(0.0884, 0.05, 0.2)),
    )
    outputs = (Output("out", torch.float16, shape="batch, kv_heads * group, head_dim"),)
    axes = (
        Axis("batch", 1, 1024),
        Axis("kv_heads", 1, 64),
        Axis("group", 1, 16),
        Axis("keys", 1, 1 << 15),
        Axis("head_dim", 64, 128, multiple=64),
    )
    train = points(
        "batch kv_heads group keys head_dim",
        full=[
            (32, 8, 4, 4096, 128),
            (16, 4, 7, 8192, 128),
            (8, 32, 1, 4096, 128),
            (64, 8, 4, 1024, 64),
        ],
        sim=[(3, 2, 4, 256, 128), (3, 2, 7, 320, 64), (8, 4, 1, 120, 64), (6, 1, 4, 128, 128)],
    )
    production = points(
        "batch kv_heads group keys head_dim",
        full=[
            (64, 8, 8, 2048, 128),
            (1, 8, 4, 32768, 128),
            (128, 2, 6, 1024, 128),
            (16, 8, 2, 8192, 128),
        ],
        sim=[(3, 1, 8, 200, 128), (1, 1, 4, 1024, 64), (8, 2, 6, 80, 64), (2, 2, 2, 300, 64)],
    )
    adversarial = (
        {"batch": 1, "kv_heads": 1, "group": 1, "keys": 1, "head_dim": 64},
        {"batch": 2, "kv_heads": 2, "group": 3, "keys": 37, "head_dim": 64},
    )
    distributions = ("normal", "uniform", "large", "sparse")

    def elements(self, dims: Dims) -> int:
        """Entries of the scores times head_dim."""
        heads = dims["kv_heads"] * dims["group"]
        return dims["batch"] * heads * dims["keys"] * dims["head_dim"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws q by the distribution, codes of all values, scales and lengths."""
        batch, kv_heads, group, keys, width = (workload.dims[a.name] for a in self.axes)
        q = draw((batch, kv_heads * group, width), torch.float32, workload.distribution, generator)
        if workload.distribution == "large":
            q = q / 64

        def cache() -> tuple[torch.Tensor, torch.Tensor]:
            code = torch.randint(-127, 128, (batch, keys, kv_heads, width), generator=generator)
            scale = (0.5 + torch.rand((batch, keys, kv_heads), generator=generator)) / 64
            return code.to(torch.int8), scale

        (k_code, k_scale), (v_code, v_scale) = cache(), cache()
        return {
            "q": q.half(),
            "k_code": k_code,
            "k_scale": k_scale,
            "v_code": v_code,
            "v_scale": v_scale,
            "length": draw_lengths(batch, keys, generator),
            **self.scalars(workload),
        }

    def oracle(
        self,
        q: torch.Tensor,
        k_code: torch.Tensor,
        k_scale: torch.Tensor,
        v_code: torch.Tensor,
        v_scale: torch.Tensor,
        length: torch.Tensor,
        scale: float,
    ) -> tuple[torch.Tensor, ...]:
        """Sequence by sequence, in fp64."""
        kv_heads, width = k_code.shape[2:]
        out = torch.empty(q.shape, dtype=torch.float64, device=q.device)
        for b, count in enumerate(length.tolist()):
            k = k_code[b, :count].double() * k_scale[b, :count, :, None].double()
            v = v_code[b, :count].double() * v_scale[b, :count, :, None].double()
            queries = q[b].double().view(kv_heads, -1, width)
            weights = torch.softmax(torch.einsum("hgd,khd->hgk", queries, k) * scale, dim=-1)
            out[b] = torch.einsum("hgk,khd->hgd", weights, v).reshape(-1, width)
        return (out,)

    def reference(
        self,
        q: torch.Tensor,
        k_code: torch.Tensor,
        k_scale: torch.Tensor,
        v_code: torch.Tensor,
        v_scale: torch.Tensor,
        length: torch.Tensor,
        scale: float,
    ) -> tuple[torch.Tensor, ...]:
        """Dequantised in float32, then one PyTorch call with a mask."""
        k = (k_code.float() * k_scale[..., None]).transpose(1, 2)
        v = (v_code.float() * v_scale[..., None]).transpose(1, 2)
        place = torch.arange(k.shape[2], device=q.device)
        visible = (place < length[:, None])[:, None, None, :]
        out = F.scaled_dot_product_attention(
            q.float()[:, :, None, :], k, v, attn_mask=visible, scale=scale, enable_gqa=True
        )
        return (out[:, :, 0, :].half(),)

    def bytes(self, dims: Dims) -> int:
        """Reads q, the lengths and one key of each sequence, the least there is; writes out."""
        batch, kv_heads, group, _, width = (dims[axis.name] for axis in self.axes)
        return batch * (4 * kv_heads * group * width + 2 * kv_heads * (width + 4) + 4)

    def flops(self, dims: Dims) -> int:
        """Two products with one key of each sequence, the least there is."""
        return 4 * dims["batch"] * dims["kv_heads"] * dims["group"] * dims["head_dim"]


PROBLEM = Int8KvDecode()
