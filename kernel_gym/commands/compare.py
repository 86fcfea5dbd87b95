"""`kernel-gym compare`: runs against a first one, task by task."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table

from kernel_gym.commands.common import JsonOption, console, note, one_line_errors, print_json
from kernel_gym.commands.metrics_table import described

if TYPE_CHECKING:
    from kernel_gym.training.compare import Comparison


def compare(
    folders: Annotated[
        list[Path], typer.Argument(metavar="RUN RUN...", help="Run folders, two or more.")
    ],
    json: JsonOption = False,
) -> None:
    """Compare runs with the first, over the tasks that both played.

    Intervals are paired bootstraps over tasks; one that holds no change is no evidence of one.

    Example: kernel-gym compare runs/before runs/after
    """
    from kernel_gym.store import RunStore
    from kernel_gym.training.compare import compare

    if len(folders) < 2:
        note("error: give two run folders or more; found one")
        raise typer.Exit(2)
    with one_line_errors():
        first, *others = [RunStore(folder) for folder in folders]
        found = [compare(first, other) for other in others]
    if json:
        runs = zip(others, found, strict=True)
        rows = [{"run": str(other.folder), **asdict(one)} for other, one in runs]
        print_json({"first": str(first.folder), "others": rows})
        return
    for other, one in zip(others, found, strict=True):
        if one.left_out:
            note(f"{len(one.left_out)} tasks left out, not in both: {', '.join(one.left_out)}")
        console.print(_table(f"{other.folder} against {first.folder}", one))


def _table(title: str, found: Comparison) -> Table:
    table = Table(title=f"{title}, {len(found.tasks)} tasks", title_style="bold", box=box.SIMPLE)
    table.add_column("metric", no_wrap=True)
    for header in ("before", "after", "change"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("95 %", no_wrap=True)
    for name, change in found.changes.items():
        sides = [
            described(name, {"value": v, "low": None})[0] for v in (change.before, change.after)
        ]
        sign = "" if change.factor else "+"
        table.add_row(name, *sides, *described(name, asdict(change.change), sign))
    return table
