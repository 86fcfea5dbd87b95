"""`kernel-gym bench clock`: modelled times against measured ones."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from kernel_gym.commands.common import (
    BAD_INPUT,
    JsonOption,
    console,
    messages,
    note,
    one_line_errors,
    print_json,
)

_COLUMNS = {
    "far": ("far", "{:.0f}"),
    "modelled_over_measured": ("ratio", "{:.2f}"),
    "median_factor": ("factor", "{:.2f}"),
    "within_1.25": ("1.25x", "{:.0%}"),
    "interval_factor": ("interval", "{:.2f}"),
    "covered": ("covers", "{:.0%}"),
    "groups": ("groups", "{:.0f}"),
    "rho_in_groups": ("rho", "{:.2f}"),
    "regret_worst": ("regret", "{:.0%}"),
}
"""By figure: the head of its column and its format."""


def clock(
    points: Annotated[
        Path, typer.Option(exists=True, dir_okay=False, help="Measured points, as JSON lines.")
    ],
    checkout: Annotated[
        list[Path] | None,
        typer.Option(exists=True, file_okay=False, help="A folder with the kernels. They run."),
    ] = None,
    hold_out: Annotated[
        list[str] | None,
        typer.Option(help="A family that nothing is fitted on; by default each one in turn."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(dir_okay=False, help="File of the predictions.")
    ] = None,
    resume: Annotated[bool, typer.Option(help="Continue the file of predictions.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Draw so many points.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
    device: Annotated[str, typer.Option(help="The architecture to simulate.")] = "gfx942",
    json: JsonOption = False,
) -> None:
    """Predict the times of measured kernels, then compare them with what was measured.

    The kernels run without a sandbox: bring only files that you trust.

    Example: kernel-gym bench clock --points points.jsonl --checkout GEAK-eval --out predicted.jsonl
    """
    from kernel_gym.clock.points import read_measured, read_points
    from kernel_gym.clock.predictions import compare, header, predict, read_predictions
    from kernel_gym.clock.scores import score

    with one_line_errors(), tempfile.TemporaryDirectory() as folder:
        chosen, refused = read_points(points)
        if limit is not None and limit < len(chosen):
            chosen = random.Random(seed).sample(chosen, limit)
        out = out or Path(folder) / "predictions.jsonl"
        if out.exists() and not resume:
            note(f"error: {out} exists; --resume continues it")
            raise typer.Exit(BAD_INPUT)
        with messages.status("predicting") as status:
            predict(chosen, checkout or [points.parent], out, header(points, device), status.update)
        first, predictions = read_predictions(out)
    rows, reasons = compare(chosen, predictions, read_measured(points))  # only now
    reasons = {**refused, **reasons}
    report = {
        **first,
        "points": len(chosen) + len(refused),
        "compared": len(rows),
        "not_compared": reasons,
        "cpu_seconds": sum(each.get("cpu_seconds", 0.0) for each in predictions.values()),
        "families": score(rows, hold_out or ()) if rows else {},
    }
    if json:
        print_json(report)
    else:
        _show(report)


def _show(report: dict[str, Any]) -> None:
    table = Table(title=f"timing model {report['timing_model']}, Triton {report['triton']}")
    table.add_column("family")
    for title in ("points", *(title for title, _ in _COLUMNS.values())):
        table.add_column(title, justify="right")
    for family, figures in report["families"].items():
        cells = [
            "" if figures[name] is None else style.format(figures[name])
            for name, (_, style) in _COLUMNS.items()
        ]
        table.add_row(family, str(figures["points"]), *cells)
    console.print(table)
    console.print(
        "far: times above two floors, which have a factor. ratio: modelled over measured. factor: "
        "median miss after the correction of the other families, 1.25x: the share within it. "
        "interval: the factor either way that has 90 % of the others. rho and regret (the worst): "
        "in groups of variants."
    )
    share = f"{len(report['not_compared'])} of {report['points']}"
    console.print(f"not compared: {share}; {report['cpu_seconds']:.0f} processor seconds")
    for reason, count in Counter(report["not_compared"].values()).most_common():
        console.print(f"  {count}: {reason}", markup=False, highlight=False)
