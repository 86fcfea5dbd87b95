"""Transposes, a step at a time, beside public times of one die of an MI210.

Source: amd/HPCTrainingExamples@1a86485e, `HIP/transpose/README.md`: 8192 x 8192 doubles on an
MI210. The kernels are our own. The matrix has a quarter of the elements, so that it fits in the
simulator's memory. Only ratios are compared: an MI210 has 104 of the 110 compute units.
"""

from __future__ import annotations

import json
from pathlib import Path

import typer

from benchmarks.simulator.microbenchmarks import ComparedFigure, Micro
from kernel_gym.sim.constants import TIMING_MODEL_VERSION

SOURCE = Path(__file__).with_name("transposes.hip")
ARCH = "gfx90a"
STORED = Path("benchmarks/calibration/transposes.json")
ROWS = 4096
_TILE = 16
PUBLIC_US = {"read_rows": 4450.2, "write_rows": 2901.8, "tiled1": 2686.4}
"""Measured times. There is none of a tile without padding, nor of a copy."""
STEPS = (("read_rows", "write_rows"), ("write_rows", "tiled1"), ("read_rows", "tiled1"))
"""Slower and faster kernel."""


def transposes() -> None:
    """Model each step of a transpose, and store how much faster it is beside public figures.

    Example: python -m benchmarks transposes
    """
    points = steps(modelled_seconds(Micro(SOURCE, ARCH)))
    rows = [
        {"step": p.name, "public": round(p.measured, 2), "modelled": round(p.modelled, 2)}
        for p in points
    ]
    stored = {"timing_model": TIMING_MODEL_VERSION, "device": ARCH, "rows": ROWS, "steps": rows}
    STORED.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    for point in points:
        typer.echo(f"{point.name}: measured {point.measured:.2f}, modelled {point.modelled:.2f}")


def modelled_seconds(micro: Micro, rows: int = ROWS) -> dict[str, float]:
    """The modelled time of each transpose, by name, and of a copy."""
    grid = (rows // _TILE, rows // _TILE)
    values = (8 * rows * rows, 0, rows)
    return {
        name: micro.launch(name, grid, _TILE * _TILE, *values).seconds or 0.0
        for name in ("copy", *PUBLIC_US, "tiled0")
    }


def steps(seconds: dict[str, float]) -> list[ComparedFigure]:
    """How many times faster each step is, measured and modelled."""
    return [
        ComparedFigure(
            "transpose",
            f"{slow} to {fast}",
            "times",
            PUBLIC_US[slow] / PUBLIC_US[fast],
            seconds[slow] / seconds[fast],
            False,
        )
        for slow, fast in STEPS
    ]
