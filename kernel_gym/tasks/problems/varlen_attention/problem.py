"""Causal attention over sequences of different length, packed one after another."""

from __future__ import annotations

import itertools
from functools import partial

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
from kernel_gym.tasks.yardsticks import Attention, farthest_attention, softmax_attention


class VarlenAttention(Problem):
    """`softmax(scale * q k^T) v` by head and sequence; sequence s is `starts[s] .. starts[s+1]-1`.

    A token sees those of its sequence up to itself.
    """

    name = "varlen_attention"
    summary = "causal attention within each of several packed sequences of ragged length"
    category = "Attention"
    level = 5
    tags = ("decoder-llm", "moe", "vision", "compute-bound", "ragged")
    source = "packed prefill of Llama-2-7B, Llama-3-8B, Qwen2.5-0.5B and OPT-1.3B"
    domain = (
        "All floating-point inputs are finite. A sequence may be empty: then two starts are equal."
    )

    args = (
        TensorArg("q", torch.float16, shape="tokens, heads, head_dim"),
        TensorArg("k", torch.float16, shape="tokens, heads, head_dim"),
        TensorArg("v", torch.float16, shape="tokens, heads, head_dim"),
        TensorArg("starts", torch.int32, shape="sequences + 1"),
        ScalarArg("scale", float, values=(0.125, 0.0884, 0.25, 0.05)),
    )
    outputs = (Output("out", torch.float16, shape="tokens, heads, head_dim"),)
    axes = (
        Axis("tokens", 1, 1 << 15),
        Axis("sequences", 1, 512),
        Axis("heads", 1, 128),
        Axis("head_dim", 64, 128, multiple=64),
    )
    train = points(
        "tokens sequences heads head_dim",
        full=[(4096, 8, 32, 128), (8192, 16, 14, 64), (4096, 3, 32, 64), (6000, 24, 32, 128)],
        sim=[(256, 4, 2, 64), (320, 9, 2, 64), (192, 2, 3, 64), (250, 6, 1, 128)],
    )
    production = points(
        "tokens sequences heads head_dim",
        full=[(8192, 5, 16, 128), (3000, 40, 32, 128), (4096, 16, 40, 64)],
        sim=[(320, 5, 1, 128), (180, 12, 2, 64), (256, 8, 3, 64)],
    )
    adversarial = ({"tokens": 5, "sequences": 5, "heads": 1, "head_dim": 64},)
    distributions = ("normal", "uniform", "structured", "wide")

    def legal(self, dims: Dims) -> bool:
        """On its axes, with a token for each sequence."""
        return super().legal(dims) and dims["sequences"] <= dims["tokens"]

    def elements(self, dims: Dims) -> int:
        """Entries of one score matrix over all tokens, times heads and head_dim."""
        return dims["tokens"] ** 2 * dims["heads"] * dims["head_dim"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws q, k, v float16 and cuts the tokens at random places, some of them equal."""
        tokens, sequences, heads, width = (workload.dims[a.name] for a in self.axes)
        shape = (tokens, heads, width)
        q, k, v = (draw(shape, torch.float16, workload.distribution, generator) for _ in range(3))
        cuts = torch.randint(0, tokens + 1, (sequences - 1,), generator=generator)
        starts = torch.cat([torch.tensor([0]), cuts.sort().values, torch.tensor([tokens])])
        return {"q": q, "k": k, "v": v, "starts": starts.int(), **self.scalars(workload)}

    def oracle(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, starts: torch.Tensor, scale: float
    ) -> tuple[torch.Tensor, ...]:
        """Sequence by sequence, in fp64."""
        return (self._attended(q, k, v, starts, scale, softmax_attention, torch.float64),)

    def reference(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        starts: torch.Tensor,
        scale: float,
    ) -> tuple[torch.Tensor, ...]:
        """One PyTorch call with a mask of blocks."""
        place = torch.arange(q.shape[0], device=q.device)
        mine = torch.searchsorted(starts[1:].long(), place, right=True)
        visible = (mine[:, None] == mine) & (place <= place[:, None])
        out = F.scaled_dot_product_attention(
            q.transpose(0, 1)[None],
            k.transpose(0, 1)[None],
            v.transpose(0, 1)[None],
            attn_mask=visible,
            scale=scale,
        )
        return (out[0].transpose(0, 1).contiguous(),)

    def yardstick(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, starts: torch.Tensor, scale: float
    ) -> tuple[torch.Tensor, ...]:
        """The reference, and weights that are rounded before they are divided by their sum."""
        (reference,) = self.reference(q, k, v, starts, scale)
        return (farthest_attention(reference, partial(self._attended, q, k, v, starts, scale)),)

    def _attended(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        starts: torch.Tensor,
        scale: float,
        attend: Attention,
        dtype: torch.dtype,
    ) -> torch.Tensor:
        """Attends sequence by sequence."""
        out = torch.empty(q.shape, dtype=torch.float64, device=q.device)
        for first, end in itertools.pairwise(starts.tolist()):
            if first == end:
                continue
            queries, keys, values = (x[first:end].transpose(0, 1) for x in (q, k, v))
            later = torch.ones(end - first, end - first, dtype=torch.bool, device=q.device).triu(1)
            scores = queries.to(dtype) @ keys.to(dtype).mT * scale
            scores = scores.masked_fill(later, float("-inf"))
            out[first:end] = attend(scores, values).transpose(0, 1)
        return out

    def flops(self, dims: Dims) -> int:
        """Two products over the lower triangles of equal sequences, which are the least."""
        each = dims["tokens"] // dims["sequences"]
        scores = dims["sequences"] * (each * (each + 1) // 2)
        return 4 * dims["heads"] * dims["head_dim"] * scores


PROBLEM = VarlenAttention()
