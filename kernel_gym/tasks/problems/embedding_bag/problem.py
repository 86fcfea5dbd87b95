"""Weighted sums of table rows, by bags of indices."""

from __future__ import annotations

import torch
import torch.nn.functional as F

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


class EmbeddingBag(Problem):
    """`out[b] = sum of weights[j] table[ids[j]] for offsets[b] <= j < offsets[b + 1]`.

    An empty bag gives zeros.
    """

    name = "embedding_bag"
    summary = "weighted sum of the table rows of each bag"
    category = "Index"
    level = 3
    tags = ("recommender", "memory-bound", "gather")
    source = "multi-hot tables of DLRM v2 on Criteo 1TB (MLPerf), FBGEMM's table-batched embeddings"
    domain = (
        "All floating-point inputs are finite. Indices lie within the table and may "
        "repeat; a bag may be empty."
    )

    args = (
        TensorArg("table", torch.float16, shape="vocab, dim"),
        TensorArg("ids", torch.int64, shape="bags * per_bag"),
        TensorArg("weights", torch.float32, shape="bags * per_bag"),
        TensorArg("offsets", torch.int64, shape="bags + 1"),
    )
    outputs = (Output("out", torch.float16, shape="bags, dim"),)
    axes = (
        Axis("vocab", 1, 1 << 24),
        Axis("bags", 1, 1 << 20),
        Axis("per_bag", 1, 512),
        Axis("dim", 1, 4096),
    )
    train = points(
        "vocab bags per_bag dim",
        full=[
            (400000, 8192, 20, 128),
            (40000, 65536, 3, 128),
            (1000000, 4096, 100, 64),
            (100000, 16384, 27, 64),
            (200000, 2048, 50, 256),
        ],
        sim=[(2000, 64, 20, 128), (1000, 256, 3, 128), (4000, 16, 100, 64), (1000, 64, 27, 64)],
    )
    production = points(
        "vocab bags per_bag dim",
        full=[(300000, 16384, 12, 128), (1000000, 8192, 7, 64), (50000, 4096, 64, 128)],
        sim=[(1500, 100, 12, 128), (5000, 100, 7, 64), (600, 16, 64, 128)],
    )
    adversarial = ({"vocab": 2, "bags": 4, "per_bag": 1, "dim": 1},)
    distributions = ("normal", "tiny", "heavy_tail", "sparse")

    def elements(self, dims: Dims) -> int:
        """Elements of the table, and those read from it."""
        return (dims["vocab"] + dims["bags"] * dims["per_bag"]) * dims["dim"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws the table; bags are cut at random, so that some are empty and some long."""
        vocab, bags, per_bag, dim = (workload.dims[axis.name] for axis in self.axes)
        lookups = bags * per_bag
        cuts = torch.randint(0, lookups + 1, (bags - 1,), generator=generator).sort().values
        ends = torch.tensor([0]), torch.tensor([lookups])
        return {
            "table": draw((vocab, dim), torch.float16, workload.distribution, generator),
            "ids": torch.randint(0, vocab, (lookups,), generator=generator),
            "weights": torch.randn(lookups, generator=generator),
            "offsets": torch.cat([ends[0], cuts, ends[1]]),
        }

    def oracle(
        self, table: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor, offsets: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Each weighted row is added to its bag, in fp64."""
        bag = torch.repeat_interleave(offsets.diff())
        rows = table[ids].double() * weights.double()[:, None]
        shape = (offsets.shape[0] - 1, table.shape[1])
        return (
            torch.zeros(shape, dtype=torch.float64, device=table.device).index_add(0, bag, rows),
        )

    def reference(
        self, table: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor, offsets: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """One PyTorch call, which takes the weights in the table's dtype."""
        out = F.embedding_bag(
            ids, table, offsets[:-1], mode="sum", per_sample_weights=weights.to(table.dtype)
        )
        return (out,)

    def bytes(self, dims: Dims) -> int:
        """Read indices (8 bytes each), weights (4) and offsets (8), write out (2); half the rows.

        Of `min(vocab, lookups)` rows more than half are asked for at random; half is counted.
        """
        vocab, bags, per_bag, dim = (dims[axis.name] for axis in self.axes)
        lookups = bags * per_bag
        rows = min(vocab, lookups) // 2
        return 12 * lookups + 8 * (bags + 1) + 2 * (bags + rows) * dim

    def flops(self, dims: Dims) -> int:
        """A product and an addition for each element looked up."""
        return 2 * dims["bags"] * dims["per_bag"] * dims["dim"]


PROBLEM = EmbeddingBag()
