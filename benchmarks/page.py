"""`python -m benchmarks table`: the pages of current figures, from `benchmarks/results`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernel_gym.commands.common import one_line_errors

if TYPE_CHECKING:
    from benchmarks.figures import BenchmarkEntry, Benchmarks, FigureInterval

FOLDER = Path("docs")
"""The folder of the pages, relative to a checkout."""
_FIRST = "benchmarks.md"
_PAGES = {
    "benchmarks-running.md": (
        "Benchmarks: installing and running",
        ("setup-times", "installation", "language-cost", "service", "ray-scaling", "recovery"),
    ),
    "benchmarks-simulator.md": (
        "Benchmarks: speed and accuracy",
        (
            *(
                "simulator-speed",
                "compiled-graphs",
                "compiled-tasks",
                "operator-kernels",
                "torch-device",
            ),
            *("evaluation-cost", "throughput-gpu", "timing-accuracy", "draws"),
        ),
    ),
    "benchmarks-training.md": (
        "Benchmarks: training",
        ("training-tiny", "training-writer-cpu", "training-inductor"),
    ),
    "benchmarks-writer.md": (
        "Benchmarks: a policy that writes kernels",
        ("training-writer-gpu", "training-retries"),
    ),
}
"""Titles and subjects of the pages beside the first one, which has all other subjects."""
_INTRODUCTION = """\
# Benchmarks

The benchmark pages list current figures, with one table for each subject. This page covers
the judge and the problems. Separate pages cover [installing and running](benchmarks-running.md),
[speed and accuracy](benchmarks-simulator.md), [training](benchmarks-training.md) and [a policy
that writes kernels](benchmarks-writer.md). `python -m benchmarks table` prints these pages from
`benchmarks/results/*.json`. `python -m benchmarks renew` recomputes the figures of the suite and
writes the pages. [Recording figures](measurements.md) describes how to add a figure.

- The column "clock" names the source of a time: *measured* (a clock of the GPU or the processor),
  *modelled* (the simulator), *wall* (elapsed time), or a dash for a count. A modelled time is not
  a measured time.
- The column "counts" gives the numbers of problems, tasks and exploits for which the figure was
  computed. A test compares these numbers with the current numbers, except for figures that need a
  GPU. Those figures may be out of date.
- GPU figures dated 2026-11-27 or earlier were measured with the former judge, in which a worker
  had access to the GPU. [Real GPUs](gpu.md) gives the figures for the current judge.
- No figure was measured on an AMD GPU. [The leaderboard](leaderboard.md) compares policies.
"""
OWN_PAGES = {
    "leaderboard": "leaderboard.md",
    "leaderboard-writer": "leaderboard.md",
    "training-keys": "training-experiments.md",
    "training-transfer": "training-experiments.md",
}
"""Subjects whose figures are on pages that say more of them."""
_HEAD = """\
| metric | figure | counts | clock | machine | command | commit, date |
|---|---|---|---|---|---|---|"""

ResultsOption = Annotated[
    Path, typer.Option("--results", help="The folder of the results of a checkout.")
]


def table(results: ResultsOption = Path("benchmarks/results")) -> None:
    """Print the current figures of the project as Markdown.

    Example: python -m benchmarks table
    """
    from benchmarks.figures import load_benchmarks

    with one_line_errors():
        print("\n".join(benchmark_pages(load_benchmarks(results)).values()), end="")


def benchmark_pages(benchmarks: Benchmarks) -> dict[str, str]:
    """Returns the pages as Markdown, by the names of their files in `docs/`."""
    elsewhere = {name for _, names in _PAGES.values() for name in names} | set(OWN_PAGES)
    machines = [f"- **{m.name}**: {m.description}" for m in benchmarks.machines.values()]
    first = [name for name in benchmarks.subjects if name not in elsewhere]
    listed = "\n".join(["## Machines\n", *machines, ""])
    pages = {_FIRST: "\n".join([_INTRODUCTION, *_tables(benchmarks, first), listed])}
    for file, (title, names) in _PAGES.items():
        head = f"# {title}\n\n[Benchmarks]({_FIRST}) explains how to read the tables.\n"
        pages[file] = "\n".join([head, *_tables(benchmarks, names)])
    return pages


def _tables(benchmarks: Benchmarks, names: Sequence[str]) -> Iterator[str]:
    """Yields the table of each subject that is there."""
    for name in names:
        subject = benchmarks.subjects.get(name)
        if subject is not None:
            rows = [_row(each, benchmarks.machines[each.machine].name) for each in subject.entries]
            yield "\n".join([f"## {subject.title}\n", _HEAD, *rows, ""])


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
