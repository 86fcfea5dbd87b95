"""`python -m benchmarks clock`: modelled times against measured ones."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernel_gym.commands.common import (
    BAD_INPUT,
    JsonOption,
    console,
    messages,
    note,
    one_line_errors,
    print_json,
)
from kernel_gym.commands.tables import folding_table

if TYPE_CHECKING:
    from benchmarks.clock.points import Point
    from benchmarks.clock.scores import Compared

_FOLD_COLUMNS = {
    "kernels": ("kernels", "{:.0f}"),
    "modelled_over_measured": ("ratio", "{:.2f}"),
    "median_factor": ("factor", "{:.2f}"),
    "within_1.25": ("in 1.25", "{:.0%}"),
    "stated_covered": ("stated", "{:.0%}"),
    "corrected_interval": ("interval", "{:.2f}"),
    "corrected_covered": ("covers", "{:.0%}"),
    "kernels_ranked": ("ranked", "{:.0f}"),
    "rho_over_shapes": ("rho", "{:.2f}"),
    "rho_apart": ("apart", "{:.2f}"),
    "uncalibrated": ("refused", "{:.0%}"),
    "uncalibrated_otherwise": ("else", "{:.0%}"),
}
_COLUMNS = {
    "far": ("far", "{:.0f}"),
    "modelled_over_measured": ("ratio", "{:.2f}"),
    "spread": ("spread", "{:.2f}"),
    "median_factor": ("factor", "{:.2f}"),
    "interval_factor": ("interval", "{:.2f}"),
    "interval_covered": ("covers", "{:.0%}"),
    "ratio_factor": ("of ratios", "{:.2f}"),
    "ratio_covered": ("covers", "{:.0%}"),
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
    per_family: Annotated[
        int | None, typer.Option(min=1, help="Draw so many points of each family.")
    ] = None,
    least_products: Annotated[
        float,
        typer.Option(
            help="Leave out points of tuning tables with at most so many multiplications."
        ),
    ] = 0.0,
    most_products: Annotated[
        float | None,
        typer.Option(help="Leave out points of tuning tables with more multiplications."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
    device: Annotated[str, typer.Option(help="The architecture to simulate.")] = "gfx942",
    residuals: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            help="File of what verdicts need: families and factors. Its other families stay.",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Predict the times of measured kernels, then compare them with what was measured.

    The kernels run without a sandbox: bring only files that you trust.

    Example: python -m benchmarks clock --points points.jsonl --checkout GEAK-eval
    """
    from benchmarks.clock.drawing import draw, languages, of_device, of_size
    from benchmarks.clock.points import read_points
    from benchmarks.clock.predictions import header, predict

    with one_line_errors(), tempfile.TemporaryDirectory() as folder:
        chosen, refused = read_points(points)
        for keep in (of_device(device), of_size(least_products, most_products)):
            chosen, left_out = keep(chosen)
            refused |= left_out
        if limit is not None and limit < len(chosen):
            chosen = random.Random(seed).sample(chosen, limit)
        given, chosen = chosen, draw(chosen, per_family, seed)
        names = {point.identity for point in chosen}
        refused |= {p.identity: "not drawn" for p in given if p.identity not in names}
        out = out or Path(folder) / "predictions.jsonl"
        if out.exists() and not resume:
            note(f"error: {out} exists; --resume continues it")
            raise typer.Exit(BAD_INPUT)
        with messages.status("predicting") as status:
            first = header(points, device, languages(chosen))
            predict(chosen, checkout or [points.parent], out, first, status.update)
        report = _compare(points, chosen, out, hold_out or (), residuals)
    report["points"] += len(refused)
    report["not_compared"] = {**refused, **report["not_compared"]}
    if json:
        print_json(report)
    else:
        _show(report)


def _compare(
    points: Path,
    chosen: Sequence[Point],
    predicted: Path,
    hold_out: Sequence[str],
    residuals: Path | None,
) -> dict[str, Any]:
    """Compares predictions with what was measured, and stores what verdicts need of it."""
    from benchmarks.clock.points import read_measured
    from benchmarks.clock.predictions import compare, read_predictions, store_compared
    from benchmarks.clock.scores import score

    first, predictions = read_predictions(predicted)
    rows, reasons = compare(chosen, predictions, read_measured(points))  # only now
    if residuals is not None:
        store_compared(residuals, first, rows, {point.family for point in chosen})
    return {
        **first,
        "points": len(chosen),
        "compared": len(rows),
        "not_compared": reasons,
        "cpu_seconds": sum(each.get("cpu_seconds", 0.0) for each in predictions.values()),
        "families": score(rows, hold_out) if rows else {},
        "folds": _folds(chosen, predictions, rows),
    }


def _folds(
    points: Sequence[Point], predictions: dict[str, dict[str, Any]], rows: Sequence[Compared]
) -> dict[str, Any]:
    """The figures with whole kernels held out, of a set that has only winners; else none."""
    from benchmarks.clock.drawing import languages
    from benchmarks.clock.kernel_folds import Kernel, score_folds
    from kernel_gym.sim.timing.compared import stored, time_factor

    if not languages(points) or not rows:
        return {}
    kernels = {}
    for point in points:
        prediction = predictions.get(point.identity, {})
        if "seconds" in prediction:
            otherwise = stored().why_not(
                stored().device, prediction["seconds"], prediction["profile"]
            )
            reason = prediction.get("uncalibrated", "")
            kernels[point.identity] = Kernel(point.kernel, reason, otherwise)
    return score_folds(rows, kernels, time_factor())


def _show(report: dict[str, Any]) -> None:
    title = f"timing model {report['timing_model']}, Triton {report['triton']}"
    _print_table(title, report["families"], _COLUMNS)
    console.print(
        "far: times above two floors, which have a factor. ratio: modelled over measured. spread: "
        "median factor between the ratio of a point and that of its family. factor: median miss "
        "after the correction of the other families. interval: the factor either way for a family "
        "that is not among the others, without a correction; of ratios: the same for two times of "
        "one problem. rho and regret (the worst): in groups of variants."
    )
    every = report["families"].get("all", {})
    for name, of in (("interval", "a time"), ("ratio", "a ratio")):
        if every:
            console.print(
                f"{every[f'{name}_families']} families promise that the interval of {of} has a "
                f"point of a new family with {every[f'{name}_level']:.0%}"
            )
    if report["folds"]:
        _show_folds(report["folds"])
    share = f"{len(report['not_compared'])} of {report['points']}"
    console.print(f"not compared: {share}; {report['cpu_seconds']:.0f} processor seconds")
    for reason, count in Counter(report["not_compared"].values()).most_common():
        console.print(f"  {count}: {reason}", markup=False, highlight=False)


def _show_folds(folds: dict[str, Any]) -> None:
    _print_table("whole kernels held out", folds, _FOLD_COLUMNS)
    console.print(
        "Five folds by kernel name. factor: median miss after the correction of the other folds. "
        "stated: share within the factor that verdicts state, without a correction. interval: of "
        "the other folds' kernels after the correction. rho: over the shapes of a kernel with at "
        "least four; apart: of those whose times differ by at least 2x. refused: uncalibrated; "
        "else: if the chip were the compared one."
    )


def _print_table(title: str, families: dict[str, Any], columns: dict[str, tuple[str, str]]) -> None:
    numbers = ("points", *(header for header, _ in columns.values()))
    table = folding_table("family", *numbers, right=numbers, title=title)
    for family, figures in families.items():
        cells = [
            "" if figures[name] is None else style.format(figures[name])
            for name, (_, style) in columns.items()
        ]
        table.add_row(family, str(figures["points"]), *cells)
    console.print(table)
