"""Kernels on one die of an MI250X beside public measurements, none of which a constant came from.

Sources: amd/amd-lab-notes@d0cc1529 (second differences of a grid of doubles),
ROCm/rocm-blogs@c9a603f2 (derivatives along rows of floats), and streams on an MI210 of the SC25
CDNA3 artifact (hibagus/SC25_AMD_CDNA3_Artifact@06e0811). The kernels are our own. Grids have 512 x
512 points a plane as there, but 64 planes and not 512, so that they fit in the simulator's memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.simulator.microbenchmarks import ComparedFigure, Micro, compared_streams

SOURCE = Path(__file__).with_name("stencils.hip")
ARCH = "gfx90a"
SIDE, PLANES = 512, 64
_POINTS = SIDE * SIDE * PLANES
_WEIGHTS = (1.0, 1.0, 1.0)


def laplacian(micro: Micro) -> Iterator[ComparedFigure]:
    """Bandwidth of ideal traffic, and bytes from memory over the ideal ones, by rows a thread."""
    inside = (SIDE - 2) ** 2 * (PLANES - 2)
    for name, rows, rate, read in (
        ("laplacian", 1, 808, 1.88),
        ("laplacian1", 1, 970, 1.26),
        ("laplacian4", 4, 1083, 1.03),
        ("laplacian8", 8, 1107, 1.01),
    ):
        grid = (SIDE // 256, SIDE // rows, PLANES)
        values = (8 * _POINTS, 0, SIDE, SIDE, PLANES, *_WEIGHTS)
        result = micro.launch(name, grid, 256, *values)
        point = f"{name}, {rows} rows"
        moved = 8 * (_POINTS + inside) / (result.seconds or 1.0) / 1e9
        yield ComparedFigure("laplacian", point, "GB/s", rate, moved, False)
        bytes_ = result.profile["bytes"]
        fetched = (bytes_["hbm"] - bytes_["written"]) / (8 * _POINTS)
        yield ComparedFigure("laplacian traffic", point, "x ideal", read, fetched, False)


def along_rows(micro: Micro) -> Iterator[ComparedFigure]:
    """Bandwidth of ideal traffic of derivatives along rows, by radius."""
    for radius, rate in ((1, 971), (2, 995), (3, 977), (4, 956)):
        values = (4 * _POINTS, 0, SIDE, SIDE, 1.0)
        result = micro.launch(f"along{radius}", (SIDE // 256, SIDE, PLANES), 256, *values)
        moved = 4 * 2 * _POINTS / (result.seconds or 1.0) / 1e9
        yield ComparedFigure("along rows", f"radius {radius}", "GB/s", rate, moved, False)


def streams() -> Iterator[ComparedFigure]:
    """Bandwidth of streams by occupancy on an MI210, which has 104 of the 110 compute units."""
    measured = {
        ("init", 256): 907,
        ("init", 512): 1446,
        ("init", 1024): 1511,
        ("read", 256): 662,
        ("read", 512): 1159,
        ("read", 1024): 1370,
        ("scale", 256): 844,
        ("scale", 512): 1230,
        ("scale", 1024): 1362,
        ("triad", 256): 1144,
        ("triad", 512): 1217,
        ("triad", 1024): 1225,
    }
    return compared_streams(Micro(arch=ARCH), measured)
