"""Rows added into the rows of a table that their indices name."""

from __future__ import annotations

import torch

from kernel_gym.tasks.distributions import draw, draw_index
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


class ScatterAddRows(Problem):
    """`out[r, :] = sum of values[t, :] over all t with ids[t] = r`, in whole numbers."""

    name = "scatter_add_rows"
    summary = "out[r, :] = sum of values[t, :] over all t with ids[t] == r; 0 where there is none"
    category = "Index"
    level = 3
    tags = ("recommender", "point-cloud", "graph", "memory-bound", "scatter")
    source = "votes by pillar of PointPillars on KITTI, neighbours by node of ogbn-arxiv and Cora"
    domain = "Indices lie within the rows and may repeat; a row may get nothing."

    args = (
        TensorArg("values", torch.int32, shape="tokens, dim"),
        TensorArg("ids", torch.int64, shape="tokens"),
        ScalarArg("num_rows", int),
    )
    outputs = (Output("out", torch.int32, check=Check.EXACT, shape="num_rows, dim"),)
    axes = (Axis("tokens", 1, 1 << 24), Axis("num_rows", 1, 1 << 22), Axis("dim", 1, 1 << 14))
    train = points(
        "tokens num_rows dim",
        full=[
            (131072, 16000, 64),
            (1166243, 169343, 16),
            (32768, 4096, 512),
            (65536, 1024, 128),
            (262144, 262144, 32),
        ],
        sim=[(1024, 160, 64), (4096, 600, 16), (256, 32, 256), (512, 512, 128)],
    )
    production = points(
        "tokens num_rows dim",
        full=[(120000, 12000, 64), (10556, 2708, 1433), (500000, 40000, 9)],
        sim=[(1200, 120, 64), (100, 27, 1433), (5000, 400, 9)],
    )
    adversarial = ({"tokens": 3, "num_rows": 5, "dim": 1},)
    distributions = ("uniform", "heavy_tail", "normal", "large")
    tiny_inputs = False

    def elements(self, dims: Dims) -> int:
        """Elements of values and output."""
        return (dims["tokens"] + dims["num_rows"]) * dims["dim"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws values and indices, both by the distribution."""
        tokens, rows, dim = (workload.dims[axis.name] for axis in self.axes)
        values = 100 * draw((tokens, dim), torch.float32, workload.distribution, generator)
        ids = draw_index((tokens,), rows, workload.distribution, generator)
        return {"values": values.clamp(-1e5, 1e5).round().int(), "ids": ids, "num_rows": rows}

    def oracle(
        self, values: torch.Tensor, ids: torch.Tensor, num_rows: int
    ) -> tuple[torch.Tensor, ...]:
        """In int64."""
        out = torch.zeros((num_rows, values.shape[1]), dtype=torch.int64, device=values.device)
        return (out.index_add(0, ids, values.long()),)

    def reference(
        self, values: torch.Tensor, ids: torch.Tensor, num_rows: int
    ) -> tuple[torch.Tensor, ...]:
        """PyTorch's index_add into zeros."""
        out = torch.zeros((num_rows, values.shape[1]), dtype=values.dtype, device=values.device)
        return (out.index_add(0, ids, values),)

    def flops(self, dims: Dims) -> int:
        """Integer additions do not count."""
        return 0


PROBLEM = ScatterAddRows()
