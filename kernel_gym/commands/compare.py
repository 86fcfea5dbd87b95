"""`kernel-gym compare`: compare runs with a first one, task by task."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table

from kernel_gym.commands.common import (
    FAILED,
    JsonOption,
    console,
    note,
    one_line_errors,
    print_json,
)
from kernel_gym.commands.metrics_table import described
from kernel_gym.commands.tables import folding_table

if TYPE_CHECKING:
    from kernel_gym.analysis.compare import Comparison
    from kernel_gym.analysis.decomposition import Decomposition
    from kernel_gym.storage.run_store import RunStore


def compare(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN RUN...",
            help="Run folders, two or more; or one, and the results of a suite's own evaluator.",
        ),
    ],
    json: JsonOption = False,
) -> None:
    """Compare runs with the first, over the tasks that both played. Exit code 1: one is unfinished.

    Intervals are paired bootstraps over tasks; one that holds no change is no evidence of one.
    Lines below the table name what else differs, such as the secret that draws data and shapes.
    Attempts that a stopped or running run has not ended do not count.

    The second path may be what a suite's evaluator has left: a run folder of AgentKernelArena,
    results of GEAK-eval, or metrics.json of KernelBenchX. Then both verdicts are listed.

    With three runs or more, two lines state how much of what is right the category of a task and
    the run explain (explained deviance, as in KernelBenchX).

    Examples: kernel-gym compare runs/before runs/after
    kernel-gym compare runs/mine their_runs/pass_0/NAME_results_0.json
    """
    from kernel_gym.analysis.compare import compare
    from kernel_gym.storage.run_store import CONFIG, RunStore

    if len(folders) < 2:
        note("error: give two run folders or more; found one")
        raise typer.Exit(2)
    if len(folders) == 2 and not (folders[1] / CONFIG).exists():
        _beside(folders[0], folders[1], json)
        return
    with one_line_errors():
        first, *others = [RunStore(folder) for folder in folders]
        results = [compare(first, other) for other in others]
        explained = _explained([first, *others]) if len(others) > 1 else None
    if json:
        runs = zip(others, results, strict=True)
        rows = [
            {"run": str(run.folder), "complete": compared.complete, **asdict(compared)}
            for run, compared in runs
        ]
        shares = {} if explained is None else {"explained": asdict(explained)}
        print_json({"first": str(first.folder), "others": rows, **shares})
    else:
        for other, compared in zip(others, results, strict=True):
            _show(first, other, compared)
        if explained is not None:
            _show_explained(explained, len(folders))
    if not all(result.complete for result in results):
        raise typer.Exit(FAILED)


def _beside(folder: Path, path: Path, json: bool) -> None:
    """Prints the verdicts of a suite's evaluator beside those of a run."""
    from kernel_gym.exchange.their_results import beside, read_their_results
    from kernel_gym.formatting import NOTHING, factor
    from kernel_gym.storage.run_store import RunStore

    with one_line_errors():
        pairs = beside(RunStore(folder), read_their_results(path))
    rows: list[dict[str, Any]] = [
        {
            "task": pair.reply.task.id,
            "sample": pair.reply.record.sample,
            "outcome": str(pair.reply.record.evaluation.outcome),
            "speedup": pair.reply.ratio_of_sums or None,
            "their_call": pair.theirs.called,
            "their_right": pair.theirs.right,
            "their_speedup": pair.theirs.speedup,
            "agree": pair.agree,
        }
        for pair in pairs
    ]
    if json:
        print_json(rows)
        return
    table = folding_table("task", "sample", "our judge", "speedup", "their evaluator", "speedup")
    for row in rows:
        theirs = "right" if row["their_right"] else "wrong" if row["their_call"] else "fails"
        speedups = [row["speedup"], row["their_speedup"]]
        ours, other = (NOTHING if speedup is None else factor(speedup) for speedup in speedups)
        table.add_row(row["task"], str(row["sample"]), row["outcome"], ours, theirs, other)
    console.print(table)
    agree = sum(pair.agree for pair in pairs)
    console.print(f"both agree on {agree} of {len(pairs)}", highlight=False)


def _show(first: RunStore, other: RunStore, found: Comparison) -> None:
    """Prints a comparison, and its limitations on standard error."""
    for store, left, asked in zip((first, other), found.unfinished, found.asked, strict=True):
        if left:
            note(
                f"{store.folder} is unfinished: {left} of {asked} attempts are not over and do not "
                "count; tasks that end early may be the easier ones"
            )
    if found.left_out:
        note(f"{len(found.left_out)} tasks left out, not in both: {', '.join(found.left_out)}")
    mark = "" if found.complete else ", unfinished"
    title = f"{other.folder} against {first.folder}, {len(found.tasks)} tasks{mark}"
    console.print(title, style="bold", highlight=False, markup=False, soft_wrap=True)
    console.print(_table(found))
    for one in found.differences:
        line = f"{one.name} differs, {one.before} and {one.after}: {one.effect}"
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _explained(runs: list[RunStore]) -> Decomposition:
    from kernel_gym.analysis.decomposition import decompose  # loads PyTorch, as tasks do

    return decompose(runs)


def _show_explained(found: Decomposition, runs: int) -> None:
    title = f"what is right in {runs} runs on {len(found.tasks)} tasks"
    console.print(title, style="bold", highlight=False)
    for name, share in (("the category of a task", found.category), ("the run", found.run)):
        if share is None:
            line = f"{name} explains nothing: there is one level, or all outcomes are alike"
        else:
            line = (
                f"{name} explains {share.explained:.1%} of the deviance, {share.expected:.1%} by "
                f"chance (degrees of freedom {share.degrees}, p = {share.p_value:.2g})"
            )
        console.print(line, highlight=False, soft_wrap=True)


def _table(found: Comparison) -> Table:
    table = Table(box=box.SIMPLE)
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
