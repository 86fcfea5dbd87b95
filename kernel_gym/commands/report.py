"""`kernel-gym report`: one HTML file that shows a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernel_gym.commands.common import JsonOption, console, messages, one_line_errors, print_json


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run folder.")],
    json: JsonOption = False,
) -> None:
    """Write DIR/report.html: figures, plots, and every submission with its feedback.

    The same figures as data go to DIR/figures/, as CSV each and together as JSON.

    Example: kernel-gym report runs/demo
    """
    from kernel_gym.analysis.breakdown import attempt_rows, run_metrics
    from kernel_gym.report import Measures, write_report
    from kernel_gym.storage.run_store import FIGURES, RunStore

    with one_line_errors(), messages.status("writing the report"):
        store = RunStore(folder)
        path = write_report(store, Measures(run_metrics(store), attempt_rows(store)))
    if json:
        print_json({"report": str(path), "figures": str(folder / FIGURES)})
    else:
        console.print(f"report: {path}", highlight=False, soft_wrap=True)
