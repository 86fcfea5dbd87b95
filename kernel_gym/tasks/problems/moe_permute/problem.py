"""Gathers the tokens of each expert for a grouped product."""

from __future__ import annotations

import torch

from kernel_gym.tasks.distributions import draw, draw_mask
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


class MoePermute(Problem):
    """`out[place[i]] = x[i // top_k]` for each choice i with `place[i] >= 0`; other rows are zero.

    Choice i is the (i % top_k)-th expert of token i // top_k, and `place[i]` its row in the layout
    by expert. Choices of dropped tokens have place -1. No other place occurs twice; rows of `out`
    without a choice are the padding between experts and become zero.
    """

    name = "moe_permute"
    summary = "rows of tokens copied to their places by expert; zeros for padding, -1 is dropped"
    category = "Index"
    level = 2
    tags = ("moe", "decoder-llm", "memory-bound", "gather", "scatter")
    source = "tokens of Mixtral-8x7B, Qwen3-30B-A3B, DeepSeek-V3 and OLMoE-1B-7B, by device"

    args = (
        TensorArg("x", torch.float16, shape="tokens, hidden"),
        TensorArg("place", torch.int32, shape="tokens, top_k"),
        ScalarArg("rows", int),
    )
    outputs = (Output("out", torch.float16, check=Check.EXACT, shape="rows, hidden"),)
    axes = (
        Axis("tokens", 1, 1 << 17),
        Axis("top_k", 1, 16),
        Axis("rows", 1, 1 << 20),
        Axis("hidden", 1, 1 << 14),
    )
    train = points(
        "tokens top_k rows hidden",
        full=[
            (4096, 2, 9216, 4096),
            (8192, 8, 73728, 2048),
            (2048, 8, 20480, 7168),
            (4096, 8, 36864, 2048),
        ],
        sim=[(64, 2, 192, 1024), (32, 8, 320, 512), (24, 4, 128, 1792), (100, 8, 1024, 256)],
    )
    production = points(
        "tokens top_k rows hidden",
        full=[
            (16384, 4, 70000, 2048),
            (512, 8, 8192, 7168),
            (1024, 1, 1500, 5120),
            (8192, 2, 20000, 6144),
        ],
        sim=[(120, 4, 600, 256), (8, 8, 130, 1024), (64, 1, 100, 1280), (60, 2, 160, 768)],
    )
    adversarial = (
        {"tokens": 1, "top_k": 1, "rows": 1, "hidden": 3},
        {"tokens": 7, "top_k": 3, "rows": 5, "hidden": 9},
    )
    distributions = ("normal", "uniform", "sparse", "range_ends")

    def elements(self, dims: Dims) -> int:
        """Elements that are written."""
        return dims["rows"] * dims["hidden"]

    def legal(self, dims: Dims) -> bool:
        """On its axes, with fewer rows than 32 times the choices."""
        return super().legal(dims) and dims["rows"] <= 32 * dims["tokens"] * dims["top_k"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x by the distribution, and places of which a twentieth and all too many are -1."""
        tokens, top_k, rows, hidden = (workload.dims[axis.name] for axis in self.axes)
        count = tokens * top_k
        place = torch.full((count,), -1)
        used = min(count, rows)
        place[:used] = torch.randperm(rows, generator=generator)[:used]
        place = place[torch.randperm(count, generator=generator)]
        dropped = draw_mask((count,), 0.05, generator)
        return {
            "x": draw((tokens, hidden), torch.float16, workload.distribution, generator),
            "place": place.masked_fill(dropped, -1).view(tokens, top_k).int(),
            "rows": rows,
        }

    def oracle(self, x: torch.Tensor, place: torch.Tensor, rows: int) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        out = torch.zeros((rows, x.shape[1]), dtype=torch.float64, device=x.device)
        token, choice = (place >= 0).nonzero(as_tuple=True)
        out[place[token, choice].long()] = x.double()[token]
        return (out,)

    def reference(
        self, x: torch.Tensor, place: torch.Tensor, rows: int
    ) -> tuple[torch.Tensor, ...]:
        """One indexed copy into zeros, with a spare row for dropped choices."""
        flat = place.view(-1).long()
        out = x.new_zeros((rows + 1, x.shape[1]))
        source = x.repeat_interleave(place.shape[1], dim=0)
        out.index_copy_(0, torch.where(flat < 0, rows, flat), source)
        return (out[:rows],)

    def bytes(self, dims: Dims) -> int:
        """Reads the places, and no row of x at least; writes the output."""
        return 4 * dims["tokens"] * dims["top_k"] + 2 * dims["rows"] * dims["hidden"]

    def flops(self, dims: Dims) -> int:
        """None."""
        return 0


PROBLEM = MoePermute()
