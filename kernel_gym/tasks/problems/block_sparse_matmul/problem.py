"""Product with a matrix of which whole blocks are stored."""

from __future__ import annotations

import itertools

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


class BlockSparseMatmul(Problem):
    """`out[:, strip j]` is the sum of `x[:, strip row[b]] @ w[b]` over the blocks b of strip j.

    A strip is `block` columns wide, a block `block` x `block`. `row[b]` is the strip of x that
    block b meets; blocks of one output strip have different rows in any order. A strip of the
    output may have no blocks; it is zero then. Strip j has the blocks from start[j] to start[j + 1]
    - 1; `start[strips]` is `blocks`.
    """

    name = "block_sparse_matmul"
    summary = "dense rows times a block-sparse matrix, stored by strips of output columns"
    category = "LinearAlgebra"
    level = 4
    tags = ("decoder-llm", "compute-bound", "sparse", "ragged")
    source = "block-sparse layers (blocks of 32 and 64) of BERT-large, GPT-2 and MegaBlocks"

    args = (
        TensorArg("x", torch.float16, shape="rows, strips_in * block"),
        TensorArg("w", torch.float16, shape="blocks, block, block"),
        TensorArg("row", torch.int32, shape="blocks"),
        TensorArg("start", torch.int32, shape="strips + 1"),
    )
    outputs = (Output("out", torch.float16, shape="rows, strips * block"),)
    axes = (
        Axis("rows", 1, 1 << 16),
        Axis("strips_in", 1, 512),
        Axis("strips", 1, 512),
        Axis("blocks", 1, 1 << 16),
        Axis("block", 16, 64, multiple=16),
    )
    train = points(
        "rows strips_in strips blocks block",
        full=[
            (4096, 32, 128, 800, 32),
            (8192, 64, 64, 1024, 64),
            (2048, 128, 128, 2000, 32),
            (1024, 12, 48, 300, 64),
        ],
        sim=[(96, 8, 16, 40, 32), (64, 6, 6, 14, 64), (128, 16, 16, 50, 32), (48, 4, 12, 24, 48)],
    )
    production = points(
        "rows strips_in strips blocks block",
        full=[
            (16384, 16, 16, 64, 64),
            (512, 256, 256, 8000, 16),
            (3000, 24, 96, 500, 32),
            (1, 128, 128, 2000, 32),
        ],
        sim=[(200, 4, 4, 6, 64), (32, 24, 24, 150, 16), (90, 6, 20, 40, 32), (1, 20, 20, 100, 32)],
    )
    adversarial = (
        {"rows": 3, "strips_in": 1, "strips": 3, "blocks": 1, "block": 16},
        {"rows": 17, "strips_in": 3, "strips": 2, "blocks": 5, "block": 32},
    )
    distributions = ("normal", "uniform", "sparse", "structured")

    def legal(self, dims: Dims) -> bool:
        """On its axes, with a power of two or 48 as the block and no more blocks than places."""
        return super().legal(dims) and dims["blocks"] <= dims["strips_in"] * dims["strips"]

    def elements(self, dims: Dims) -> int:
        """Multiply-adds, or elements of both dense matrices if these are more."""
        strips = dims["strips_in"] + dims["strips"]
        return dims["rows"] * dims["block"] * max(dims["blocks"] * dims["block"], strips)

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x by the distribution, blocks, and their places, all different."""
        rows, strips_in, strips, blocks, block = (workload.dims[a.name] for a in self.axes)
        place = torch.randperm(strips_in * strips, generator=generator)[:blocks]
        owner = (place // strips_in).sort(stable=True)
        start = torch.bincount(owner.values, minlength=strips).cumsum(0)
        fan_in = max(1, blocks * block // strips)
        w = torch.randn((blocks, block, block), generator=generator) * fan_in**-0.5
        return {
            "x": draw((rows, strips_in * block), torch.float16, workload.distribution, generator),
            "w": w.half(),
            "row": (place % strips_in)[owner.indices].int(),
            "start": torch.cat((torch.zeros(1, dtype=torch.int64), start)).int(),
        }

    def oracle(
        self, x: torch.Tensor, w: torch.Tensor, row: torch.Tensor, start: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Strip by strip, in fp64."""
        block = w.shape[1]
        strips = x.double().unflatten(1, (-1, block))
        out = []
        for low, high in itertools.pairwise(start.tolist()):
            left = strips[:, row[low:high].long()].flatten(1)
            out.append(left @ w[low:high].double().flatten(0, 1))
        return (torch.cat(out, dim=1),)

    def reference(
        self, x: torch.Tensor, w: torch.Tensor, row: torch.Tensor, start: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """The blocks placed in a dense matrix, then one product."""
        block, strips = w.shape[1], start.shape[0] - 1
        each = torch.arange(strips, device=x.device)
        owner = torch.repeat_interleave(each, start.diff(), output_size=w.shape[0])
        dense = w.new_zeros((x.shape[1] // block, strips, block, block))
        dense[row.long(), owner] = w
        return (x @ dense.transpose(1, 2).reshape(x.shape[1], strips * block),)

    def bytes(self, dims: Dims) -> int:
        """Reads the blocks and the strips of x that one needs; writes the output."""
        rows, _, strips, blocks, block = (dims[axis.name] for axis in self.axes)
        stored = 2 * blocks * block * block + 4 * blocks + 4 * (strips + 1)
        return stored + 2 * rows * block * (1 + strips)

    def flops(self, dims: Dims) -> int:
        """A product and an addition for each element of a block and row."""
        return 2 * dims["rows"] * dims["blocks"] * dims["block"] ** 2


PROBLEM = BlockSparseMatmul()
