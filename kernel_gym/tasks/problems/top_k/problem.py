"""The k largest values of each row and where they are."""

from __future__ import annotations

from collections.abc import Mapping

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


class TopK(Problem):
    """`values[i, :]` are the k largest of row i, descending, `indices` their distinct places."""

    name = "top_k"
    summary = "the k largest values of each row, descending, and their indices"
    category = "Reduce-and-scan"
    level = 4
    tags = ("moe", "decoder-llm", "recommender", "memory-bound")
    source = (
        "experts of Mixtral-8x7B, Qwen3-30B-A3B and DeepSeek-V3, top-k sampling of Llama-2 logits"
    )
    domain = (
        "All floating-point inputs are finite. Several elements may be equal: then any "
        "order of their places is right."
    )

    args = (TensorArg("x", torch.float32, shape="rows, cols"), ScalarArg("k", int))
    outputs = (
        Output("values", torch.float32, check=Check.EXACT, shape="rows, k"),
        Output("indices", torch.int64, check=Check.CUSTOM, shape="rows, k"),
    )
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 1, 1 << 18), Axis("k", 1, 64))
    train = points(
        "rows cols k",
        full=[(16384, 256, 8), (65536, 128, 8), (256, 32000, 50), (262144, 8, 2), (4096, 2048, 10)],
        sim=[(256, 256, 8), (512, 128, 6), (6, 8000, 20), (2048, 8, 2)],
    )
    production = points(
        "rows cols k",
        full=[(32768, 384, 8), (131072, 64, 6), (64, 128256, 40)],
        sim=[(128, 384, 8), (1000, 64, 6), (4, 12564, 16)],
    )
    adversarial = ({"rows": 3, "cols": 5, "k": 5},)
    distributions = ("normal", "structured", "constant_rows", "sparse")

    def legal(self, dims: Dims) -> bool:
        """No more values are asked for than there are."""
        return super().legal(dims) and dims["k"] <= dims["cols"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x float32[rows, cols]."""
        shape = (workload.dims["rows"], workload.dims["cols"])
        x = draw(shape, torch.float32, workload.distribution, generator)
        return {"x": x, "k": workload.dims["k"]}

    def oracle(self, x: torch.Tensor, k: int) -> tuple[torch.Tensor, ...]:
        """The head of a sorted row."""
        values, indices = torch.sort(x.double(), dim=1, descending=True, stable=True)
        return values[:, :k].contiguous(), indices[:, :k].contiguous()

    def reference(self, x: torch.Tensor, k: int) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        values, indices = torch.topk(x, k, dim=1)
        return values, indices

    def mismatches(
        self, name: str, found: torch.Tensor, inputs: Mapping[str, Value], expected: torch.Tensor
    ) -> torch.Tensor:
        """An index is wrong if out of range, seen before, or not of the value due there."""
        x = inputs["x"]
        if name != "indices" or not isinstance(x, torch.Tensor):
            return super().mismatches(name, found, inputs, expected)
        within = found.clamp(0, x.shape[1] - 1)
        order = found.argsort(dim=1, stable=True)
        ordered = found.gather(1, order)
        again = torch.zeros_like(found, dtype=torch.bool)
        again[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
        repeated = torch.zeros_like(again).scatter(1, order, again)
        wrong_value = x.gather(1, within) != x.gather(1, expected)
        return (found != within) | repeated | wrong_value

    def flops(self, dims: Dims) -> int:
        """One comparison for each element."""
        return dims["rows"] * dims["cols"]


PROBLEM = TopK()
