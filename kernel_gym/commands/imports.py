"""`kernel-gym import CHECKOUT` and `kernel-gym imports`: suites that others wrote."""

from __future__ import annotations

import os
import textwrap
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from kernel_gym.commands.common import (
    FAILED,
    JsonOption,
    console,
    messages,
    one_line_errors,
    print_json,
)
from kernel_gym.commands.tables import folding_table
from kernel_gym.formatting import NOTHING, factor

if TYPE_CHECKING:
    from kernel_gym.commands.output import Row
    from kernel_gym.imports.manifest import ManifestEntry

SHARED_GPU = 4
"""How many tasks at a time share a real GPU, if the command does not say."""
OutOption = Annotated[
    Path | None,
    typer.Option(help="A folder for manifests; without it, the user's folder of imports."),
]


def import_checkout(
    checkout: Path,
    suite: str | None,
    only: str,
    out: Path | None,
    device: str,
    workers: int | None,
    json: bool,
) -> None:
    """Imports the suites of a checkout and prints the verdicts on their tasks."""
    from kernel_gym.devices import backend_of, resolve
    from kernel_gym.imports.bench.bench_process import BenchProcess
    from kernel_gym.imports.bench.import_bench import ImportBench
    from kernel_gym.imports.bench.importing import import_suite
    from kernel_gym.imports.readers.known import get_reader, readers_of

    rows: list[Row] = []
    with one_line_errors(), ExitStack() as stack:
        device = resolve(device)
        threads = backend_of(device).threads
        processors = os.cpu_count() or 1
        number = workers or (processors if threads else SHARED_GPU)
        compilers = max(1, processors // number)
        benches: list[ImportBench | BenchProcess] = [
            ImportBench(device) if threads else BenchProcess(device, compilers)
            for _ in range(number)
        ]
        for bench in benches:
            stack.enter_context(bench)  # processes open the device side by side
        for bench in benches:
            bench.open()
        bar = stack.enter_context(Progress(console=messages))
        readers = [get_reader(suite)] if suite else readers_of(checkout)
        for reader in readers:
            line = bar.add_task(reader.suite, total=None)
            for step in import_suite(reader, checkout, benches, out, only):
                bar.update(line, total=step.total, completed=step.done)
                rows.append(_row(reader.suite, step.entry, device))
    _print(rows, json)


def imports(
    suite: Annotated[str | None, typer.Argument(help="A suite; without it, all.")] = None,
    out: OutOption = None,
    device: Annotated[str, typer.Option("--device", "-d", help="A device name.")] = "sim:gfx942",
    json: JsonOption = False,
) -> None:
    """List imported suites: tasks by category and status, reasons, and changed files.

    Example: kernel-gym imports tritonbench-g
    """
    from kernel_gym.imports.imported import changed_files
    from kernel_gym.imports.manifest import read_manifest
    from kernel_gym.tasks.names import imports_folder

    folder = out or imports_folder()
    names = [suite] if suite else sorted(path.stem for path in folder.glob("*.json"))
    rows = []
    with one_line_errors():
        for name in names:
            manifest = read_manifest(name, folder)
            for entry in manifest.tasks.values():
                row = _row(name, entry, device)
                rows.append(row | {"changed": changed_files(manifest, entry)})
    _print(rows, json)
    changed = sum(bool(row["changed"]) for row in rows)
    if changed and not json:
        console.print(f"{changed} tasks have changed in their checkout: import it again")


def suite_runner(
    task_id: Annotated[str, typer.Argument(help="An imported task.")],
    file: Annotated[Path, typer.Argument(help="The source.", exists=True, dir_okay=False)],
    device: Annotated[str, typer.Option("--device", "-d", help="A device name.")] = "sim:gfx942",
    json: JsonOption = False,
) -> None:
    """Run the suite's own tests on a candidate, beside our judge. Exit code 1 when one refuses it.

    They see a pristine copy of the task with the candidate in place of the kernel, and decide by
    the suite's own tolerance. Tasks of agentkernelarena have a runner, those of fastkernels have
    captured calls.

    Example: kernel-gym suite-runner kernelbenchx/gelu my.py
    """
    from kernel_gym.imports.bench.import_bench import ImportBench
    from kernel_gym.imports.bench.suite_runner import suite_verdict
    from kernel_gym.tasks import get_task

    source = file.read_text(encoding="utf-8")
    with one_line_errors(), ImportBench(device) as bench:
        verdict = suite_verdict(task_id, source, bench)
        outcome = str(bench.evaluator.evaluate(get_task(task_id), source).outcome)
    if json:
        print_json({**asdict(verdict), "outcome": outcome})
    else:
        word = "passes" if verdict.correct else f"fails: {verdict.message}"
        told = f"{task_id}: the suite's own tests ({verdict.rule}): {word}\nour judge: {outcome}"
        console.print(told, markup=False, highlight=False)
    if not verdict.correct or outcome != "passed":
        raise typer.Exit(FAILED)


def _row(suite: str, entry: ManifestEntry, device: str) -> Row:
    verdict = entry.verdicts.get(device)
    status = entry.status(device)
    compiled = verdict.compiled if verdict else None
    return {
        "task": f"{suite}/{entry.name}",
        "suite": suite,
        "category": entry.category,
        "status": str(status) if status else "untried",
        "reason": entry.reason or (verdict.reason if verdict else ""),
        "flags": list(verdict.flags) if verdict else [],
        "notes": list(verdict.notes) if verdict else [],
        "speedup": verdict.speedup if verdict else None,
        "compiled_speedup": compiled.speedup if compiled else None,
        "compiled_reason": compiled.reason if compiled else "",
    }


def _print(rows: list[Row], json: bool) -> None:
    if json:
        print_json(rows)
        return
    console.print(_by_category(rows))
    if any(row["compiled_speedup"] or row["compiled_reason"] for row in rows):
        console.print(_compiled(rows))
    reasons = Counter((row["suite"], row["status"], _short(row["reason"])) for row in rows)
    table = folding_table("suite", "status", "reason", "tasks", title="reasons")
    for (suite, status, reason), number in reasons.most_common():
        if reason:
            table.add_row(suite, status, reason, str(number))
    if table.row_count:
        console.print(table)
    lost = _left_out(rows)
    if lost.row_count:
        console.print(lost)


def _left_out(rows: Iterable[Row]) -> Table:
    """Returns one row for each form of calls that a task of a suite has no workload of."""
    from kernel_gym.imports.manifest import LEFT_OUT

    table = folding_table("task", "call, and why", title="forms that are left out")
    for row in rows:
        for note in row["notes"]:
            kind, mark, text = note.partition(": ")
            if mark and kind == LEFT_OUT:
                table.add_row(row["task"], escape(text))
    return table


def _by_category(rows: Iterable[Row]) -> Table:
    """Returns one row for each category, with a sum for each suite."""
    statuses = ("admitted", "flagged", "unsupported", "untried")
    counts: dict[tuple[str, str], Counter[str]] = {}
    for row in rows:
        for category in dict.fromkeys((row["category"], "all")):
            counts.setdefault((row["suite"], category), Counter())[row["status"]] += 1
    numbers = ("found", *statuses)
    table = folding_table("suite", "category", *numbers, right=numbers, title="imported")
    for (suite, category), count in sorted(counts.items()):
        cells = [str(count[status] or "") for status in statuses]
        table.add_row(suite, category, str(sum(count.values())), *cells)
    return table


def _compiled(rows: Iterable[Row]) -> Table:
    """Returns one row for each suite: how `torch.compile` compares with eager PyTorch."""
    from kernel_gym.analysis.summary import geometric_mean

    numbers = ("measured", "not compiled", "geometric speedup", "least", "most")
    title = "torch.compile as a baseline"
    table = folding_table("suite", *numbers, right=numbers, title=title)
    listed = list(rows)
    for suite in sorted({row["suite"] for row in listed}):
        own = [row for row in listed if row["suite"] == suite]
        speedups = [row["compiled_speedup"] for row in own if row["compiled_speedup"]]
        failed = sum(bool(row["compiled_reason"]) for row in own)
        figures = (
            geometric_mean(speedups),
            min(speedups, default=None),
            max(speedups, default=None),
        )
        shown = [NOTHING if figure is None else factor(figure) for figure in figures]
        table.add_row(suite, str(len(speedups)), str(failed), *shown)
    return table


def _short(reason: str) -> str:
    """Returns the kind of a reason: its text up to the first colon, cut between words."""
    return textwrap.shorten(reason.partition(": ")[0], 70, placeholder=" ...")
