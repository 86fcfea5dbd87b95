"""Shared parts of the commands: options, consoles, exit codes, one-line errors and tables."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table

from kernel_gym.commands.errors import BAD_INPUT, FAILED, INTERRUPTED, one_line_errors
from kernel_gym.commands.names import (
    DeviceOption,
    OptionalSuiteOption,
    PolicyOption,
    RewardOption,
    SuiteOption,
    TaskArgument,
    TaskOption,
    TasksOption,
)
from kernel_gym.commands.output import console, messages, note, print_json
from kernel_gym.formatting import factor

if TYPE_CHECKING:
    from kernel_gym.analysis.summary import RunSummary, TaskSummary

__all__ = [
    "BAD_INPUT",
    "FAILED",
    "INTERRUPTED",
    "DeviceOption",
    "ExecutorOption",
    "JsonOption",
    "OptionalSuiteOption",
    "OverwriteOption",
    "PolicyOption",
    "ResumeOption",
    "RewardOption",
    "RunFolderOption",
    "SamplesOption",
    "SecretOption",
    "SeedOption",
    "SuiteOption",
    "TaskArgument",
    "TaskOption",
    "TasksOption",
    "console",
    "executor_arguments",
    "limits_text",
    "messages",
    "note",
    "one_line_errors",
    "print_json",
    "styled_outcome",
    "summary_table",
]

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
SeedOption = Annotated[
    int | None,
    typer.Option(
        "--seed",
        min=0,
        help="Draw unseen workloads and data from this seed; without it, from the system.",
    ),
]

SecretOption = Annotated[
    Path | None,
    typer.Option(
        "--secret",
        help="A run's folder or secret.json: draw what that run draws for the same seed.",
    ),
]

ExecutorOption = Annotated[
    str,
    typer.Option("--executor", help="Where evaluations run: inline, local, ray or http://HOST."),
]

RunFolderOption = Annotated[
    Path, typer.Option("--out", help="The run folder.", file_okay=False, show_default=False)
]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Throw away the run in --out.")]
SamplesOption = Annotated[int, typer.Option(min=1, help="Episodes a task, for pass@k.")]

MAX_SAMPLES = 8
"""Most samples of a task that a table lists one by one."""
_OUTCOME_STYLE = {"passed": "green", "hack": "bold red", "infra": "yellow"}


def executor_arguments(
    executor: str, device: str, seed: int | None, workers: int | None
) -> dict[str, object]:
    """Returns arguments of an executor. By default it has as many workers as the device takes."""
    from kernel_gym.executors import default_workers, is_service

    if is_service(executor):
        return {"seed": seed}
    arguments: dict[str, object] = {"device": device, "seed": seed}
    if executor != "inline":
        arguments["workers"] = workers or default_workers(device)
    return arguments


def styled_outcome(outcome: str) -> str:
    """Returns an outcome in its colour."""
    return f"[{_OUTCOME_STYLE.get(outcome, 'red')}]{outcome}[/]"


def solved_text(summary: RunSummary) -> str:
    """Returns how many tasks are solved, and how many of them by an unchanged start kernel."""
    text = f"{summary.solved} of {len(summary.tasks)} tasks solved"
    return f"{text}, {summary.copies} of them by the start kernel" if summary.copies else text


def limits_text(summary: RunSummary) -> str:
    """Returns in how many speedups a ratio of times counts as a limit; empty if in none."""
    from kernel_gym.records import RATIO_CLAMP

    if not summary.clamped:
        return ""
    low, high = map(factor, RATIO_CLAMP)
    return (
        f"{summary.clamped} of {summary.solved} speedups have ratios of times beyond {low} to "
        f"{high}, which count as these limits"
    )


def summary_table(summary: RunSummary) -> Table:
    """Returns a run's summary as a table with one row for each task."""
    title = solved_text(summary)
    if summary.unfinished:
        title += f", {summary.unfinished} of {len(summary.tasks)} unfinished"
    if summary.clock:
        title += f"; times are {summary.clock}"
    table = Table(title=title, title_style="bold", box=box.SIMPLE)
    table.show_edge = table.pad_edge = False  # so that tasks of this project fit 80 characters
    table.collapse_padding = True
    table.add_column("task", overflow="fold")
    several = any(sample > 1 for task in summary.tasks for sample in task.samples)
    if several:
        table.add_column("sample", justify="right", no_wrap=True)
    table.add_column("each turn", no_wrap=not several)
    for header in ("speedup", "unseen"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("best file", no_wrap=True)
    for task in summary.tasks:
        best = factor(task.speedup), factor(task.unseen_speedup), _file_name(task)
        samples = [("", "\n".join(_turns(task)))]
        if several:
            samples = _samples(task)
        for number, (sample, turns) in enumerate(samples):
            cells = [task.task] if number == 0 else [""]
            cells += [sample] if several else []
            table.add_row(*cells, turns or "[dim]none[/]", *(best if number == 0 else ("",) * 3))
    return table


def _file_name(task: TaskSummary) -> str:
    """Returns the best source's path within the task's folder of sources, which fits a terminal."""
    return task.source.removeprefix(f"sources/{task.task}/")


def _turns(task: TaskSummary, sample: int | None = None) -> list[str]:
    """Returns outcome and reward of each turn, for one sample or all."""
    turns = zip(task.samples, task.outcomes, task.rewards, strict=True)
    return [
        f"{styled_outcome(name)} {'masked' if value is None else f'{value:.2f}'}"
        for number, name, value in turns
        if sample in (None, number)
    ]


def _samples(task: TaskSummary) -> list[tuple[str, str]]:
    """Returns one row for each sample; many samples give one row with counts of outcomes."""
    numbers = sorted(set(task.samples))
    if len(numbers) <= MAX_SAMPLES:
        return [(str(number), ", ".join(_turns(task, number))) for number in numbers] or [("", "")]
    counts = Counter(task.outcomes).most_common()
    counted = ", ".join(f"{styled_outcome(name)} {count}" for name, count in counts)
    return [(f"all {len(numbers)}", counted)]
