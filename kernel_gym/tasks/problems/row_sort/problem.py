"""Stable ascending sort of each row, with its permutation."""

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


class RowSort(Problem):
    """`values[i, :]` is row i in ascending order, `indices` where each value came from."""

    name = "row_sort"
    summary = (
        "sort each row ascending, equal values in their old order, and the index of each value"
    )
    category = "Reduce-and-scan"
    level = 4
    tags = ("recommender", "vision", "decoder-llm", "sort")
    source = (
        "top-p filtering of a shortlist, candidates of DLRM re-ranking, RPN scores of Faster R-CNN"
    )

    args = (TensorArg("x", torch.float32, shape="rows, cols"),)
    outputs = (
        Output("values", torch.float32, check=Check.EXACT, shape="rows, cols"),
        Output("indices", torch.int64, check=Check.EXACT, shape="rows, cols"),
    )
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 1, 8192))
    train = points(
        "rows cols",
        full=[(2048, 1024), (512, 2000), (8192, 256), (128, 4096), (16384, 100)],
        sim=[(24, 256), (3, 1000), (64, 128), (200, 64)],
    )
    production = points(
        "rows cols",
        full=[(4096, 512), (256, 3000), (16384, 200)],
        sim=[(8, 512), (12, 300), (100, 100)],
    )
    adversarial = ({"rows": 3, "cols": 1},)
    distributions = ("normal", "structured", "constant_rows", "sparse")

    def elements(self, dims: Dims) -> int:
        """Pairs of values in a row, the cost of a sort by counting."""
        return dims["rows"] * dims["cols"] ** 2

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x float32[rows, cols]."""
        shape = (workload.dims["rows"], workload.dims["cols"])
        return {"x": draw(shape, torch.float32, workload.distribution, generator)}

    def oracle(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """A stable sort in fp64."""
        values, indices = torch.sort(x.double(), dim=1, stable=True)
        return values, indices

    def reference(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        values, indices = torch.sort(x, dim=1, stable=True)
        return values, indices

    def flops(self, dims: Dims) -> int:
        """A comparison for each doubling of the sorted length."""
        return dims["rows"] * dims["cols"] * (dims["cols"] - 1).bit_length()


PROBLEM = RowSort()
