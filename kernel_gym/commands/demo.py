"""`kernel-gym demo`: a first run and its report, on any Linux machine, without a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernel_gym.commands.eval import evaluate
from kernel_gym.commands.report import report


def demo(
    out: Annotated[
        Path, typer.Option(help="The run folder. A former run there is thrown away.")
    ] = Path("runs/demo"),
) -> None:
    """Play the example kernels on the suite quickstart, simulated, and write a report.

    Example: kernel-gym demo
    """
    evaluate("examples", out, device="sim:gfx942", seed=0, overwrite=True)
    report(out)
