"""Sorts the choices of a router by expert and pads each expert's share to whole blocks."""

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

_BLOCKS = "ceil((tokens * top_k + experts * (block - 1)) / block)"
"""Room for the worst case: every expert one choice past a whole block."""
_CAPACITY = f"{_BLOCKS} * block"


class MoeAlignSort(Problem):
    """Orders the choices `0 .. tokens * top_k - 1` by expert for a grouped product.

    The choices of an expert keep their order. They start at a multiple of `block`, and entries with
    the number of choices pad them to whole blocks. `block_expert[i]` is the expert of block i, or
    -1 beyond the last; `total` is the length that is used.
    """

    name = "moe_align_sort"
    summary = (
        "choices ordered by expert, each expert padded to whole blocks, and each block's owner"
    )
    category = "Fusion"
    level = 4
    tags = ("moe", "decoder-llm", "memory-bound", "scatter", "ragged")
    source = "fused MoE of vLLM for Mixtral-8x7B, Qwen3-30B-A3B, OLMoE-1B-7B and DBRX"
    domain = "The experts of one token are distinct; an expert may have no token."

    args = (
        TensorArg("expert", torch.int32, shape="tokens, top_k"),
        ScalarArg("experts", int),
        ScalarArg("block", int),
    )
    outputs = (
        Output("order", torch.int32, check=Check.EXACT, shape=_CAPACITY),
        Output("block_expert", torch.int32, check=Check.EXACT, shape=_BLOCKS),
        Output("total", torch.int32, check=Check.EXACT, shape="1"),
    )
    axes = (
        Axis("tokens", 1, 1 << 18),
        Axis("top_k", 1, 16),
        Axis("experts", 1, 256),
        Axis("block", 16, 128, multiple=16),
    )
    train = points(
        "tokens top_k experts block",
        full=[(65536, 8, 128, 64), (131072, 2, 8, 128), (65536, 8, 64, 64), (131072, 4, 16, 32)],
        sim=[(512, 8, 128, 16), (2048, 2, 8, 64), (640, 8, 64, 32), (1024, 4, 16, 32)],
    )
    production = points(
        "tokens top_k experts block",
        full=[(32768, 8, 256, 64), (131072, 4, 60, 64), (262144, 1, 16, 128)],
        sim=[(384, 8, 128, 32), (1024, 4, 60, 16), (3072, 1, 16, 64)],
    )
    adversarial = ({"tokens": 1, "top_k": 1, "experts": 7, "block": 16},)
    distributions = ("normal", "uniform", "structured")

    def legal(self, dims: Dims) -> bool:
        """On its axes, with as many experts as are chosen."""
        return super().legal(dims) and dims["top_k"] <= dims["experts"]

    def elements(self, dims: Dims) -> int:
        """Choices, as often as a baseline looks at them."""
        return dims["tokens"] * dims["top_k"] * dims["experts"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Chooses by logits of the distribution, some experts being more popular than others."""
        tokens, top_k, experts, block = (workload.dims[axis.name] for axis in self.axes)
        logits = draw((tokens, experts), torch.float32, workload.distribution, generator)
        popularity = 2 * torch.rand(experts, generator=generator)
        expert = (logits + popularity).topk(top_k, dim=1).indices.int()
        return {"expert": expert, "experts": experts, "block": block}

    def oracle(self, expert: torch.Tensor, experts: int, block: int) -> tuple[torch.Tensor, ...]:
        """Expert by expert."""
        flat = expert.reshape(-1).long()
        blocks = -(-(len(flat) + experts * (block - 1)) // block)
        order = torch.full((blocks * block,), len(flat), device=expert.device)
        owner = torch.full((blocks,), -1, device=expert.device)
        end = 0
        for e in range(experts):
            mine = (flat == e).nonzero()[:, 0]
            order[end : end + len(mine)] = mine
            used = -(-len(mine) // block)
            owner[end // block : end // block + used] = e
            end += used * block
        return order, owner, torch.tensor([end], device=expert.device)

    def reference(self, expert: torch.Tensor, experts: int, block: int) -> tuple[torch.Tensor, ...]:
        """A stable sort, counts, and a scatter."""
        flat = expert.reshape(-1).long()
        count = flat.shape[0]
        blocks = -(-(count + experts * (block - 1)) // block)
        counts = torch.zeros(experts, dtype=torch.int64, device=expert.device)
        counts.scatter_add_(0, flat, torch.ones_like(flat))
        padded = (counts + block - 1) // block * block
        ends = torch.cumsum(padded, dim=0)
        by_expert = torch.argsort(flat, stable=True)
        mine = flat[by_expert]
        shift = (ends - padded) - (torch.cumsum(counts, dim=0) - counts)
        place = torch.arange(count, device=expert.device) + shift[mine]
        order = torch.full((blocks * block,), count, device=expert.device)
        order = order.scatter(0, place, by_expert)
        first = torch.arange(blocks, device=expert.device) * block
        owner = torch.searchsorted(ends, first, right=True)
        owner = torch.where(first < ends[-1], owner, -1)
        return order.to(torch.int32), owner.to(torch.int32), ends[-1:].to(torch.int32)

    def bytes(self, dims: Dims) -> int:
        """Read the choices, write all outputs, 4 bytes each."""
        written = sum(size for (size,) in self.output_shapes(dims).values())
        return 4 * (dims["tokens"] * dims["top_k"] + written)

    def flops(self, dims: Dims) -> int:
        """None."""
        return 0


PROBLEM = MoeAlignSort()
