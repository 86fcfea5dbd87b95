"""`kernel-gym report`: one HTML file that shows a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernel_gym.commands.common import JsonOption, console, one_line_errors, print_json


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run folder.")],
    json: JsonOption = False,
) -> None:
    """Write DIR/report.html: tables, plots, and every submission with its feedback.

    Example: kernel-gym report runs/demo
    """
    from kernel_gym.report import write_report
    from kernel_gym.store import RunStore

    with one_line_errors():
        path = write_report(RunStore(folder))
    if json:
        print_json({"report": str(path)})
    else:
        console.print(f"report: {path}", highlight=False, soft_wrap=True)
