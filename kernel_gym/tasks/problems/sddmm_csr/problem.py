"""Inner products of rows of two dense matrices at the places of a sparse one."""

from __future__ import annotations

import torch

from kernel_gym.tasks.distributions import draw, draw_index
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
from kernel_gym.tasks.yardsticks import farthest, products_in_order


def _pairs(
    q: torch.Tensor, k: torch.Tensor, start: torch.Tensor, column: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gathers the rows of q and k of each nonzero, both [nonzeros, width]."""
    rows = torch.arange(q.shape[0], device=q.device)
    owner = torch.repeat_interleave(rows, (start[1:] - start[:-1]).long())
    return q[owner], k[column.long()]


class SddmmCsr(Problem):
    """`out[j] = scale * dot(q[i], k[column[j]])` for every j from start[i] to start[i + 1] - 1.

    The columns of a row may have any order and may repeat. Rows may be empty; `start[0]` is 0 and
    `start[rows]` is `nonzeros`. Sums are accumulated in float32.
    """

    name = "sddmm_csr"
    summary = "sampled product of dense matrices: scores of the edges of a graph, in CSR order"
    category = "LinearAlgebra"
    level = 3
    tags = ("graph", "memory-bound", "ragged", "gather")
    source = (
        "attention of graph transformers on Cora, ogbn-arxiv, PubMed and OGB molecules, by device"
    )

    args = (
        TensorArg("q", torch.float16, shape="rows, width"),
        TensorArg("k", torch.float16, shape="cols, width"),
        TensorArg("start", torch.int32, shape="rows + 1"),
        TensorArg("column", torch.int32, shape="nonzeros"),
        ScalarArg("scale", float, values=(1.0, 0.125, 0.3)),
    )
    outputs = (Output("out", torch.float32, shape="nonzeros"),)
    axes = (
        Axis("rows", 1, 1 << 20),
        Axis("cols", 1, 1 << 20),
        Axis("nonzeros", 1, 1 << 24),
        Axis("width", 1, 1024),
    )
    train = points(
        "rows cols nonzeros width",
        full=[
            (169343, 169343, 1166243, 128),
            (19717, 19717, 88648, 512),
            (50000, 50000, 2000000, 64),
            (100000, 100000, 220000, 256),
        ],
        sim=[
            (400, 400, 2800, 128),
            (200, 300, 900, 512),
            (128, 500, 5000, 64),
            (500, 500, 1100, 256),
        ],
    )
    production = points(
        "rows cols nonzeros width",
        full=[
            (132534, 132534, 1500000, 80),
            (100000, 20000, 1000000, 32),
            (8192, 8192, 400000, 512),
            (2708, 2708, 10556, 1000),
        ],
        sim=[
            (130, 130, 1500, 80),
            (1000, 200, 10000, 32),
            (80, 80, 4000, 128),
            (50, 50, 400, 1000),
        ],
    )
    adversarial = (
        {"rows": 3, "cols": 2, "nonzeros": 1, "width": 3},
        {"rows": 2, "cols": 7, "nonzeros": 70, "width": 17},
    )
    distributions = ("normal", "uniform", "heavy_tail", "structured")

    def elements(self, dims: Dims) -> int:
        """Products, or elements of the dense matrices if these are more."""
        return (dims["nonzeros"] + dims["rows"] + dims["cols"]) * dims["width"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws rows of which some are frequent and some empty, columns, and both matrices."""
        rows, cols, nonzeros, width = (workload.dims[axis.name] for axis in self.axes)
        owner = draw_index((nonzeros,), rows, "heavy_tail", generator)
        start = torch.bincount(owner, minlength=rows).cumsum(0)
        kind = workload.distribution
        return {
            "q": draw((rows, width), torch.float16, kind, generator),
            "k": draw((cols, width), torch.float16, kind, generator),
            "start": torch.cat((torch.zeros(1, dtype=torch.int64), start)).int(),
            "column": torch.randint(cols, (nonzeros,), generator=generator).int(),
            **self.scalars(workload),
        }

    def oracle(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        start: torch.Tensor,
        column: torch.Tensor,
        scale: float,
    ) -> tuple[torch.Tensor, ...]:
        """Both rows gathered, in fp64."""
        left, right = _pairs(q, k, start, column)
        return ((left.double() * right.double()).sum(1) * scale,)

    def reference(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        start: torch.Tensor,
        column: torch.Tensor,
        scale: float,
    ) -> tuple[torch.Tensor, ...]:
        """Both rows gathered and multiplied in float32."""
        rows = torch.arange(q.shape[0], device=q.device)
        counts = (start[1:] - start[:-1]).long()
        owner = torch.repeat_interleave(rows, counts, output_size=column.shape[0])
        left, right = q[owner].float(), k[column.long()].float()
        return (torch.einsum("ij,ij->i", left, right) * scale,)

    def yardstick(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        start: torch.Tensor,
        column: torch.Tensor,
        scale: float,
    ) -> tuple[torch.Tensor, ...]:
        """The same with sums term by term, and q scaled before: a single product may cancel."""
        one, other = _pairs(q, k, start, column)
        left, right = one.float()[:, None], other.float()[:, :, None]
        answers = [
            *(products_in_order(left, right, len(column))[..., 0, 0] * scale),
            *products_in_order(left * scale, right, len(column))[..., 0, 0],
        ]
        return (farthest(self.oracle(q, k, start, column, scale)[0], answers),)

    def bytes(self, dims: Dims) -> int:
        """Reads the sparse structure and at least one row of both matrices; writes the output."""
        rows, _, nonzeros, width = (dims[axis.name] for axis in self.axes)
        return 4 * (rows + 1) + 8 * nonzeros + 4 * width

    def flops(self, dims: Dims) -> int:
        """A product and an addition for each element of each pair."""
        return 2 * dims["nonzeros"] * dims["width"]


PROBLEM = SddmmCsr()
