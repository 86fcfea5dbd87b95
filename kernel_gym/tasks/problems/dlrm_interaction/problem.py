"""Pairwise interaction of the features of a recommender."""

from __future__ import annotations

import torch

from kernel_gym.tasks.distributions import draw
from kernel_gym.tasks.problem import (
    Axis,
    Dims,
    Output,
    Problem,
    TensorArg,
    Value,
    points,
)
from kernel_gym.tasks.workload import Workload


class DlrmInteraction(Problem):
    """`out[b]` is `dense[b]` and then the products of all pairs of distinct features.

    The features of b are `dense[b]`, then the rows of `sparse[b]`; the product of features i > j
    stands at place `width + i (i - 1) / 2 + j`.
    """

    name = "dlrm_interaction"
    summary = "dense feature and the dot products of all pairs of distinct features, float16"
    category = "Fusion"
    level = 3
    tags = ("recommender", "memory-bound")
    source = (
        "DLRM of MLPerf (26 tables of 128), DLRM-Criteo Kaggle (26 of 16), RMC1-3 of DeepRecSys"
    )

    args = (
        TensorArg("dense", torch.float16, shape="batch, width"),
        TensorArg("sparse", torch.float16, shape="batch, tables, width"),
    )
    outputs = (Output("out", torch.float16, shape="batch, width + tables * (tables + 1) / 2"),)
    axes = (Axis("batch", 1, 1 << 18), Axis("tables", 1, 63), Axis("width", 8, 128, multiple=8))
    train = points(
        "batch tables width",
        full=[(16384, 26, 128), (65536, 26, 16), (32768, 10, 32), (16384, 40, 64)],
        sim=[(64, 26, 128), (160, 26, 16), (256, 10, 32), (48, 40, 64)],
    )
    production = points(
        "batch tables width",
        full=[(32768, 26, 64), (65536, 8, 64), (8192, 63, 128)],
        sim=[(96, 26, 64), (192, 8, 64), (24, 63, 128)],
    )
    adversarial = ({"batch": 3, "tables": 1, "width": 8},)
    distributions = ("normal", "uniform", "sparse", "structured")

    def elements(self, dims: Dims) -> int:
        """Multiply-adds, with the tables padded to a power of two of at least 16."""
        padded = max(16, 1 << dims["tables"].bit_length())
        return dims["batch"] * padded**2 * dims["width"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws dense [batch, width] and sparse [batch, tables, width], float16."""
        batch, tables, width = (workload.dims[axis.name] for axis in self.axes)
        kind = workload.distribution
        return {
            "dense": draw((batch, width), torch.float16, kind, generator),
            "sparse": draw((batch, tables, width), torch.float16, kind, generator),
        }

    def oracle(self, dense: torch.Tensor, sparse: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        features = torch.cat([dense.double()[:, None], sparse.double()], dim=1)
        i, j = torch.tril_indices(features.shape[1], features.shape[1], -1, device=dense.device)
        return (torch.cat([dense.double(), (features @ features.mT)[:, i, j]], dim=1),)

    def reference(self, dense: torch.Tensor, sparse: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """As DLRM writes it: concatenate, a batched product, its lower triangle, concatenate."""
        features = torch.cat([dense[:, None, :], sparse], dim=1)
        products = torch.bmm(features, features.transpose(1, 2))
        count = features.shape[1]
        i, j = torch.tril_indices(count, count, offset=-1, device=dense.device)
        return (torch.cat([dense, products[:, i, j]], dim=1),)

    def flops(self, dims: Dims) -> int:
        """A product and an addition for each pair and place."""
        tables = dims["tables"]
        return dims["batch"] * tables * (tables + 1) * dims["width"]


PROBLEM = DlrmInteraction()
