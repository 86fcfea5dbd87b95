"""`kernel-gym bench table`: the page of current figures, from `benchmarks/results`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernel_gym.commands.common import one_line_errors

if TYPE_CHECKING:
    from kernel_gym.benchmarks import BenchmarkEntry, Benchmarks, FigureInterval

_INTRODUCTION = """\
# Benchmarks

Current figures only, one table a subject. `kernel-gym bench table > docs/benchmarks.md` writes this
page from `benchmarks/results/*.json`; [Measurements](measurements.md) says how to add a figure.

- Clock: *measured* by a clock of the GPU or the processor, *modelled* by the simulator, *wall* for
  elapsed time, and a dash for a count. A modelled time is never a measured one.
- Commit: the code that was measured. "Recorded" marks older figures whose code was not noted; the
  commit is then the one that added the figure. The link leads to the circumstances.
- Nothing here ran on an AMD GPU.
"""
_HEAD = """\
| metric | figure | clock | machine | command | commit |
|---|---|---|---|---|---|"""

ResultsOption = Annotated[
    Path, typer.Option("--results", help="The folder of the results of a checkout.")
]


def table(results: ResultsOption = Path("benchmarks/results")) -> None:
    """Print the current figures of the project as Markdown.

    Example: kernel-gym bench table > docs/benchmarks.md
    """
    from kernel_gym.benchmarks import load_benchmarks

    with one_line_errors():
        print(benchmark_page(load_benchmarks(results)), end="")


def benchmark_page(benchmarks: Benchmarks) -> str:
    """Returns the page as Markdown."""
    parts = [_INTRODUCTION]
    for subject in benchmarks.subjects.values():
        rows = [_row(entry, benchmarks.machines[entry.machine].name) for entry in subject.entries]
        parts.append("\n".join([f"## {subject.title}\n", _HEAD, *rows, ""]))
    machines = [f"- **{m.name}**: {m.description}" for m in benchmarks.machines.values()]
    parts.append("\n".join(["## Machines\n", *machines, ""]))
    return "\n".join(parts)


def _row(entry: BenchmarkEntry, machine: str) -> str:
    metric = entry.metric if entry.note is None else f"{entry.metric}<br>*{entry.note}*"
    clock = "-" if entry.clock == "none" else entry.clock
    commit = f"`{entry.commit[:7]}`"
    if entry.source is not None:
        commit = f"[{commit}]({entry.source})"
    if entry.commit_role == "recorded":
        commit = f"recorded {commit}"
    cells = [metric, _figure(entry), clock, machine, f"`{entry.command}`", commit]
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _figure(entry: BenchmarkEntry) -> str:
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
