"""Rows of a table by index: an embedding lookup."""

from __future__ import annotations

import torch

from kernel_gym.tasks.distributions import draw
from kernel_gym.tasks.problem import (
    Axis,
    Check,
    Dims,
    Output,
    Problem,
    TensorArg,
    Value,
    points,
)
from kernel_gym.tasks.workload import Workload


class GatherRows(Problem):
    """`out[t, :] = table[ids[t], :]`."""

    name = "gather_rows"
    summary = "out[t, :] = table[ids[t], :]"
    category = "Index"
    level = 1
    tags = ("decoder-llm", "recommender", "moe", "memory-bound", "gather")
    source = "embeddings of GPT-2, Llama-2-7B, BERT-base, Qwen2.5-0.5B, tables of DLRM on Criteo"
    domain = "All floating-point inputs are finite. Indices lie within the table and may repeat."

    args = (
        TensorArg("table", torch.float16, shape="vocab, dim"),
        TensorArg("ids", torch.int64, shape="tokens"),
    )
    outputs = (Output("out", torch.float16, check=Check.EXACT, shape="tokens, dim"),)
    axes = (Axis("vocab", 1, 1 << 24), Axis("tokens", 1, 1 << 24), Axis("dim", 1, 1 << 15))
    train = points(
        "vocab tokens dim",
        full=[
            (50257, 16384, 768),
            (32000, 8192, 4096),
            (30522, 32768, 768),
            (400000, 262144, 128),
            (151936, 8192, 896),
        ],
        sim=[(500, 256, 768), (100, 64, 4096), (300, 500, 768), (4000, 2048, 128)],
    )
    production = points(
        "vocab tokens dim",
        full=[(128256, 4096, 2048), (32000, 16384, 2560), (1000000, 524288, 64)],
        sim=[(200, 128, 2048), (150, 100, 2560), (9000, 4096, 64)],
    )
    adversarial = ({"vocab": 1, "tokens": 3, "dim": 1},)
    distributions = ("normal", "range_ends", "structured", "tiny")

    def elements(self, dims: Dims) -> int:
        """Elements of the table and the output."""
        return (dims["vocab"] + dims["tokens"]) * dims["dim"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws the table by the distribution, and every index alike often."""
        vocab, tokens, dim = (workload.dims[axis.name] for axis in self.axes)
        table = draw((vocab, dim), torch.float16, workload.distribution, generator)
        return {"table": table, "ids": torch.randint(0, vocab, (tokens,), generator=generator)}

    def oracle(self, table: torch.Tensor, ids: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Exact in any type."""
        return (table.double()[ids],)

    def reference(self, table: torch.Tensor, ids: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (torch.index_select(table, 0, ids),)

    def bytes(self, dims: Dims) -> int:
        """Read indices (8 bytes each), write out (2); read the rows asked for, once each.

        Of `min(vocab, tokens)` rows more than half are asked for at random; half is counted.
        """
        rows = min(dims["vocab"], dims["tokens"]) // 2
        return 8 * dims["tokens"] + 2 * (dims["tokens"] + rows) * dims["dim"]

    def flops(self, dims: Dims) -> int:
        """None."""
        return 0


PROBLEM = GatherRows()
