"""Product of a sparse matrix in CSR form and a dense matrix."""

from __future__ import annotations

import torch

from kernel_gym.tasks.distributions import draw, draw_index
from kernel_gym.tasks.problem import Axis, Dims, Output, Problem, TensorArg, Value, points
from kernel_gym.tasks.workload import Workload


class SpmmCsr(Problem):
    """`out[i] = sum over j from start[i] to start[i + 1] - 1 of value[j] * x[column[j]]`.

    The columns of a row may have any order and may repeat. Rows may be empty; `start[0]` is 0 and
    `start[rows]` is `nonzeros`. Sums are accumulated in float32 and rounded once.
    """

    name = "spmm_csr"
    summary = "float16 CSR matrix times a dense matrix of features, rows of very different length"
    category = "LinearAlgebra"
    level = 3
    tags = ("graph", "recommender", "memory-bound", "ragged", "gather")
    source = "aggregation by neighbours on Cora, ogbn-arxiv, Reddit and PubMed, by device"

    args = (
        TensorArg("start", torch.int32, shape="rows + 1"),
        TensorArg("column", torch.int32, shape="nonzeros"),
        TensorArg("value", torch.float16, shape="nonzeros"),
        TensorArg("x", torch.float16, shape="cols, features"),
    )
    outputs = (Output("out", torch.float16, shape="rows, features"),)
    axes = (
        Axis("rows", 1, 1 << 20),
        Axis("cols", 1, 1 << 20),
        Axis("nonzeros", 1, 1 << 24),
        Axis("features", 1, 4096),
    )
    train = points(
        "rows cols nonzeros features",
        full=[
            (169343, 169343, 1166243, 128),
            (19717, 19717, 88648, 512),
            (50000, 50000, 2000000, 64),
            (2708, 2708, 10556, 1433),
        ],
        sim=[
            (400, 400, 2800, 128),
            (200, 300, 900, 512),
            (128, 500, 5000, 64),
            (90, 90, 350, 1433),
        ],
    )
    production = points(
        "rows cols nonzeros features",
        full=[
            (132534, 132534, 1500000, 256),
            (100000, 20000, 1000000, 32),
            (8192, 8192, 400000, 512),
            (3327, 3327, 9104, 602),
        ],
        sim=[
            (130, 130, 1500, 256),
            (1000, 200, 10000, 32),
            (80, 80, 4000, 128),
            (110, 110, 300, 602),
        ],
    )
    adversarial = (
        {"rows": 3, "cols": 2, "nonzeros": 1, "features": 3},
        {"rows": 1, "cols": 7, "nonzeros": 70, "features": 17},
    )
    distributions = ("normal", "uniform", "heavy_tail", "sparse")

    def elements(self, dims: Dims) -> int:
        """Products, or elements of the dense matrices if these are more."""
        return (dims["nonzeros"] + dims["rows"] + dims["cols"]) * dims["features"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws rows of which some are frequent and some empty, columns, values and features."""
        rows, cols, nonzeros, features = (workload.dims[axis.name] for axis in self.axes)
        owner = draw_index((nonzeros,), rows, "heavy_tail", generator)
        start = torch.bincount(owner, minlength=rows).cumsum(0)
        return {
            "start": torch.cat((torch.zeros(1, dtype=torch.int64), start)).int(),
            "column": torch.randint(cols, (nonzeros,), generator=generator).int(),
            "value": torch.randn(nonzeros, generator=generator).half(),
            "x": draw((cols, features), torch.float16, workload.distribution, generator),
        }

    def oracle(
        self, start: torch.Tensor, column: torch.Tensor, value: torch.Tensor, x: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """A scatter of the products, in fp64."""
        rows = start.shape[0] - 1
        owner = torch.repeat_interleave(
            torch.arange(rows, device=x.device), (start[1:] - start[:-1]).long()
        )
        out = torch.zeros((rows, x.shape[1]), dtype=torch.float64, device=x.device)
        return (out.index_add_(0, owner, value.double()[:, None] * x.double()[column.long()]),)

    def reference(
        self, start: torch.Tensor, column: torch.Tensor, value: torch.Tensor, x: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Rows gathered and scaled, then added up by row in float32, rounded once."""
        rows = start.shape[0] - 1
        owner = torch.repeat_interleave(
            torch.arange(rows, device=x.device),
            (start[1:] - start[:-1]).long(),
            output_size=column.shape[0],
        )
        out = torch.zeros((rows, x.shape[1]), device=x.device)
        return (out.index_add_(0, owner, x[column.long()].float() * value[:, None]).half(),)

    def bytes(self, dims: Dims) -> int:
        """Reads the sparse matrix and at least one row of features; writes the output."""
        rows, _, nonzeros, features = (dims[axis.name] for axis in self.axes)
        return 4 * (rows + 1) + 6 * nonzeros + 2 * features * (rows + 1)

    def flops(self, dims: Dims) -> int:
        """A product and an addition for each element and feature."""
        return 2 * dims["nonzeros"] * dims["features"]


PROBLEM = SpmmCsr()
