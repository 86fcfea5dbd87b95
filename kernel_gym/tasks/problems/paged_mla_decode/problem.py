"""Multi-head latent attention of one new token a sequence to a paged cache."""

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


class PagedMlaDecode(Problem):
    """`softmax(scale * q c^T) c[:, :rank]` by head, over the first `length[b]` latents c.

    Latent j of sequence b is row `j % 16` of page `table[b, j // 16]`: `rank` compressed columns,
    which are also the values, then `rope` columns with positions. All heads share the latents.
    Lengths are from 1 to 16 * pages; entries of the table beyond a sequence's last page may be any
    page. Scores may exceed 88, where exp overflows in float32.
    """

    name = "paged_mla_decode"
    summary = "one-token attention of many heads to one paged cache of latents, as in DeepSeek-V3"
    category = "Attention"
    level = 5
    tags = ("moe", "decoder-llm", "memory-bound", "ragged", "gather")
    source = "decode of DeepSeek-V3 and DeepSeek-V2-Lite (rank 512, rope 64; 128 and 16 heads)"

    args = (
        TensorArg("q", torch.bfloat16, shape="batch, heads, rank + rope"),
        TensorArg("cache", torch.bfloat16, shape="batch * pages, 16, rank + rope"),
        TensorArg("table", torch.int32, shape="batch, pages"),
        TensorArg("length", torch.int32, shape="batch"),
        ScalarArg("rank", int),
        ScalarArg("scale", float, values=(0.0722, 0.1147, 0.05)),
    )
    outputs = (Output("out", torch.bfloat16, shape="batch, heads, rank"),)
    axes = (
        Axis("batch", 1, 1024),
        Axis("heads", 1, 128),
        Axis("pages", 1, 1 << 12),
        Axis("rank", 128, 512, multiple=128),
        Axis("rope", 32, 64, multiple=32),
    )
    train = points(
        "batch heads pages rank rope",
        full=[
            (32, 128, 128, 512, 64),
            (64, 16, 256, 512, 64),
            (8, 128, 512, 512, 64),
            (64, 32, 64, 256, 32),
        ],
        sim=[(2, 16, 8, 512, 64), (3, 16, 12, 256, 32), (1, 32, 16, 256, 64), (4, 8, 8, 128, 64)],
    )
    production = points(
        "batch heads pages rank rope",
        full=[
            (128, 16, 64, 512, 64),
            (16, 64, 256, 512, 64),
            (1, 128, 1024, 512, 64),
            (32, 40, 64, 256, 32),
        ],
        sim=[(4, 16, 4, 512, 64), (2, 20, 10, 256, 32), (1, 16, 24, 256, 64), (6, 10, 4, 256, 32)],
    )
    adversarial = (
        {"batch": 1, "heads": 1, "pages": 1, "rank": 128, "rope": 32},
        {"batch": 2, "heads": 17, "pages": 3, "rank": 128, "rope": 64},
    )
    distributions = ("normal", "uniform", "large", "structured")

    def legal(self, dims: Dims) -> bool:
        """On its axes, with powers of two as ranks."""
        return super().legal(dims) and dims["rank"] in (128, 256, 512)

    def elements(self, dims: Dims) -> int:
        """Entries of the scores times the width of a latent."""
        width = dims["rank"] + dims["rope"]
        return dims["batch"] * dims["heads"] * dims["pages"] * 16 * width

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws q and latents by the distribution, pages in random order, lengths and scale."""
        batch, heads, pages, rank, rope = (workload.dims[a.name] for a in self.axes)
        kind, width = workload.distribution, rank + rope
        shrink = (1 / 64, 1e-3) if kind == "large" else (1, 1)
        q = draw((batch, heads, width), torch.float32, kind, generator) * shrink[0]
        cache = draw((batch * pages, 16, width), torch.float32, kind, generator) * shrink[1]
        return {
            "q": q.bfloat16(),
            "cache": cache.bfloat16(),
            "table": torch.randperm(batch * pages, generator=generator).view(batch, pages).int(),
            "length": draw_lengths(batch, 16 * pages, generator),
            "rank": rank,
            **self.scalars(workload),
        }

    def oracle(
        self,
        q: torch.Tensor,
        cache: torch.Tensor,
        table: torch.Tensor,
        length: torch.Tensor,
        rank: int,
        scale: float,
    ) -> tuple[torch.Tensor, ...]:
        """Sequence by sequence, in fp64."""
        out = torch.empty((*q.shape[:2], rank), dtype=torch.float64, device=q.device)
        for b, count in enumerate(length.tolist()):
            latents = cache[table[b].long()].double().flatten(0, 1)[:count]
            weights = torch.softmax(q[b].double() @ latents.mT * scale, dim=-1)
            out[b] = weights @ latents[:, :rank]
        return (out,)

    def reference(
        self,
        q: torch.Tensor,
        cache: torch.Tensor,
        table: torch.Tensor,
        length: torch.Tensor,
        rank: int,
        scale: float,
    ) -> tuple[torch.Tensor, ...]:
        """The pages gathered, then one PyTorch call with a mask."""
        latents = cache[table.long()].flatten(1, 2)[:, None]
        place = torch.arange(latents.shape[2], device=q.device)
        visible = (place < length[:, None])[:, None, :]
        out = F.scaled_dot_product_attention(
            q[:, None], latents, latents[..., :rank], attn_mask=visible[:, None], scale=scale
        )
        return (out[:, 0].contiguous(),)

    def bytes(self, dims: Dims) -> int:
        """Reads q, the lengths and one latent of each sequence, the least there is; writes out."""
        batch, heads, _, rank, rope = (dims[axis.name] for axis in self.axes)
        return batch * (2 * heads * (2 * rank + rope) + 2 * (rank + rope) + 8)

    def flops(self, dims: Dims) -> int:
        """Two products with one latent of each sequence, the least there is."""
        return 2 * dims["batch"] * dims["heads"] * (2 * dims["rank"] + dims["rope"])


PROBLEM = PagedMlaDecode()
