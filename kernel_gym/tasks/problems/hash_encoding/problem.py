"""Multiresolution hash encoding of points."""

from __future__ import annotations

import itertools

import torch

from kernel_gym.tasks.distributions import draw, draw_mask
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

FACTORS = (1, 2654435761, 805459861)


class HashEncoding(Problem):
    """For each level l, the trilinear mean of the features of the eight corners of a point's cell.

    With `at = point * resolution[l]`, in float32, the cell is `floor(at)` and the weights are the
    products of `at - cell` or its complement to 1 on each axis. Corner (x, y, z) has row `(x ^ (y *
    2654435761) ^ (z * 805459861)) % size` of the level's table; the terms before the remainder are
    reduced to 32 unsigned bits. `out[i, 2 l : 2 l + 2]` are the features of level l.
    """

    name = "hash_encoding"
    summary = "features of points from hashed corners of grids of several resolutions"
    category = "Index"
    level = 4
    tags = ("vision", "memory-bound", "gather")
    source = "Instant-NGP: 16 levels, tables of 2^14 to 2^19 rows, resolutions of 16 to 2048"
    domain = (
        "Table entries are finite. Coordinates are at least 0 and below 1, resolutions from 1 to "
        "2048; two levels may have the same one. The size of a table need not be a power of two."
    )

    args = (
        TensorArg("point", torch.float32, shape="points, 3"),
        TensorArg("table", torch.float16, shape="levels, size, 2"),
        TensorArg("resolution", torch.int32, shape="levels"),
    )
    outputs = (Output("out", torch.float16, shape="points, 2 * levels"),)
    axes = (Axis("points", 1, 1 << 20), Axis("levels", 1, 32), Axis("size", 2, 1 << 19))
    train = points(
        "points levels size",
        full=[
            (262144, 16, 1 << 19),
            (1 << 18, 16, 1 << 14),
            (65536, 8, 100003),
            (1 << 19, 4, 1 << 16),
        ],
        sim=[(1000, 16, 4096), (2048, 8, 2048), (512, 12, 6000), (4096, 4, 1024)],
    )
    production = points(
        "points levels size",
        full=[
            (131072, 16, 1 << 18),
            (1 << 20, 2, 1 << 15),
            (100000, 12, 1 << 16),
            (8192, 24, 1 << 17),
        ],
        sim=[(700, 16, 2048), (5000, 2, 4096), (900, 12, 1024), (256, 24, 8192)],
    )
    adversarial = (
        {"points": 3, "levels": 1, "size": 2},
        {"points": 7, "levels": 3, "size": 63},
    )
    distributions = ("normal", "uniform", "sparse", "structured")
    tiny_inputs = False
    exchangeable = False

    def elements(self, dims: Dims) -> int:
        """Pairs of a point and a level, or rows of the tables if these are more."""
        return dims["levels"] * max(dims["points"], dims["size"])

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws points of the unit cube, tables by the distribution, and resolutions."""
        count, levels, size = (workload.dims[axis.name] for axis in self.axes)
        growth = 128 ** (torch.arange(levels).double() / max(levels - 1, 1))
        jitter = 1 - 0.2 * torch.rand(levels, generator=generator)
        point = torch.rand((count, 3), generator=generator)
        return {
            "point": point.masked_fill(draw_mask((count, 1), 0.02, generator), 0.0),
            "table": draw((levels, size, 2), torch.float16, workload.distribution, generator),
            "resolution": (16 * growth * jitter).int(),
        }

    def oracle(
        self, point: torch.Tensor, table: torch.Tensor, resolution: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Level by level and corner by corner, in fp64 after the product in float32."""
        out = []
        for rows, sides in zip(table.double(), resolution.tolist(), strict=True):
            at = (point.float() * sides).double()
            cell = at.floor()
            share = at - cell
            total = torch.zeros((len(point), 2), dtype=torch.float64, device=point.device)
            for corner in itertools.product((0, 1), repeat=3):
                code = torch.zeros(len(point), dtype=torch.int64, device=point.device)
                weight = torch.ones(len(point), dtype=torch.float64, device=point.device)
                for axis, far in enumerate(corner):
                    code ^= (cell[:, axis].long() + far) * FACTORS[axis] & 0xFFFFFFFF
                    weight = weight * (share[:, axis] if far else 1 - share[:, axis])
                total = total + weight[:, None] * rows[code % len(rows)]
            out.append(total)
        return (torch.cat(out, dim=1),)

    def reference(
        self, point: torch.Tensor, table: torch.Tensor, resolution: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """All levels and corners at once: one gather and one weighted sum in float32."""
        levels, size, _ = table.shape
        at = point[:, None, :] * resolution[None, :, None].float()
        cell = torch.floor(at)
        share = at - cell
        far = torch.arange(8, device=point.device)[:, None] >> torch.arange(3, device=point.device)
        far = far & 1
        factor = torch.tensor([1, 2654435761, 805459861], device=point.device)
        part = (cell.long()[:, :, None, :] + far) * factor
        code = part[..., 0] ^ part[..., 1] ^ part[..., 2]
        row = (code & 0xFFFFFFFF) % size
        near = torch.where(far == 1, share[:, :, None, :], 1 - share[:, :, None, :])
        weight = near.prod(dim=3)
        row = row + size * torch.arange(levels, device=point.device)[:, None]
        features = table.view(-1, 2)[row].float()
        return (torch.einsum("plc,plcf->plf", weight, features).flatten(1).half(),)

    def bytes(self, dims: Dims) -> int:
        """Reads the points and one row of each table at least; writes the features."""
        count, levels, _ = (dims[axis.name] for axis in self.axes)
        return 12 * count + 8 * levels + 4 * count * levels

    def flops(self, dims: Dims) -> int:
        """Seven interpolations of 3 for each feature, and three products for the place."""
        return dims["points"] * dims["levels"] * 45


PROBLEM = HashEncoding()
