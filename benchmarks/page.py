"""`python -m benchmarks table`: the page of current figures, from `benchmarks/results`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernel_gym.commands.common import one_line_errors

if TYPE_CHECKING:
    from benchmarks.figures import BenchmarkEntry, Benchmarks, FigureInterval

PAGE = Path("docs/benchmarks.md")
"""The page, relative to a checkout."""
_INTRODUCTION = """\
# Benchmarks

Current figures only, one table a subject. `python -m benchmarks table` prints this page from
`benchmarks/results/*.json`, `python -m benchmarks renew` writes it and the figures of the suite;
[Recording figures](measurements.md) says how to add one.

- Clock: *measured* by a clock of the GPU or the processor, *modelled* by the simulator, *wall* for
  elapsed time, and a dash for a count. A modelled time is never a measured one.
- Speaks of: the sizes of the tree that the figure holds for. A test compares them with today's,
  except where a GPU is needed; those figures are as old as their date.
- Rows of a GPU up to 2026-11-27 were measured with the former judge, in which a worker held the
  GPU. [Real GPUs](gpu.md) has the figures of the present one.
- Nothing here ran on an AMD GPU. Policies are compared on [the leaderboard](leaderboard.md).
"""
_OWN_PAGES = ("leaderboard",)
"""Subjects whose figures have a page of their own."""
_HEAD = """\
| metric | figure | speaks of | clock | machine | command | commit, date |
|---|---|---|---|---|---|---|"""

ResultsOption = Annotated[
    Path, typer.Option("--results", help="The folder of the results of a checkout.")
]


def table(results: ResultsOption = Path("benchmarks/results")) -> None:
    """Print the current figures of the project as Markdown.

    Example: python -m benchmarks table > docs/benchmarks.md
    """
    from benchmarks.figures import load_benchmarks

    with one_line_errors():
        print(benchmark_page(load_benchmarks(results)), end="")


def benchmark_page(benchmarks: Benchmarks) -> str:
    """Returns the page as Markdown."""
    parts = [_INTRODUCTION]
    for name, subject in benchmarks.subjects.items():
        if name in _OWN_PAGES:
            continue
        rows = [_row(entry, benchmarks.machines[entry.machine].name) for entry in subject.entries]
        parts.append("\n".join([f"## {subject.title}\n", _HEAD, *rows, ""]))
    machines = [f"- **{m.name}**: {m.description}" for m in benchmarks.machines.values()]
    parts.append("\n".join(["## Machines\n", *machines, ""]))
    return "\n".join(parts)


def _row(entry: BenchmarkEntry, machine: str) -> str:
    metric = entry.metric if entry.note is None else f"{entry.metric}<br>*{entry.note}*"
    clock = "-" if entry.clock == "none" else entry.clock
    counts = ", ".join(
        f"{count:,} {name.replace('_', ' ')}" for name, count in entry.counts.items()
    )
    when = f"`{entry.commit[:8]}`, {entry.date}"
    cells = [metric, figure_text(entry), counts, clock, machine, f"`{entry.command}`", when]
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def figure_text(entry: BenchmarkEntry) -> str:
    """Returns the value with its unit, interval and goal."""
    unit = "x" if entry.unit == "x" else f" {entry.unit}"
    if entry.value is None:
        assert entry.interval is not None  # the schema asks for one of the two
        text = f"**{_ends(entry.interval)}**{unit} ({entry.interval.kind})"
    else:
        text = f"**{entry.value:,}**{unit}"
        if entry.interval is not None:
            text += f" ({entry.interval.kind}: {_ends(entry.interval)})"
    if entry.goal is not None:
        text += f"; goal: {entry.goal.text}, {'met' if entry.goal.met else 'missed'}"
    return text


def _ends(interval: FigureInterval) -> str:
    return f"{interval.low:,} to {interval.high:,}"
