"""What the commands share: consoles, JSON output, exit codes and one-line errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kernel_gym.formatting import factor

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130

console = Console()
"""Results go here: standard output."""
messages = Console(stderr=True)
"""Everything else goes here: progress, notes, errors."""

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
DeviceOption = Annotated[
    str, typer.Option("--device", "-d", help="A device name; auto takes a GPU when there is one.")
]
SeedOption = Annotated[
    int | None,
    typer.Option(
        "--seed",
        help="Draw unseen workloads and data from this seed; without it, from the system.",
    ),
]

ExecutorOption = Annotated[
    str, typer.Option("--executor", help="Where evaluations run: inline, local or ray.")
]
RewardOption = Annotated[
    str,
    typer.Option(
        "--reward", help="What scores a submission: a name, a .toml file, or module:function."
    ),
]

_OUTCOME_STYLE = {"passed": "green", "hack": "bold red", "infra": "yellow"}


def executor_arguments(
    executor: str, device: str, seed: int | None, workers: int | None
) -> dict[str, Any]:
    """What an executor is made with; by default it has as many workers as the device takes."""
    from kernel_gym.executors import default_workers

    arguments: dict[str, Any] = {"device": device, "seed": seed}
    if executor != "inline":
        arguments["workers"] = workers or default_workers(device)
    return arguments


def print_json(data: Any) -> None:
    """Writes JSON to standard output, unformatted by the terminal."""
    print(json.dumps(data, indent=2, ensure_ascii=False))


def note(text: str) -> None:
    """Writes one line to standard error."""
    messages.print(escape(text), highlight=False, soft_wrap=True)


def styled_outcome(outcome: str) -> str:
    """An outcome in its colour."""
    return f"[{_OUTCOME_STYLE.get(outcome, 'red')}]{outcome}[/]"


def summary_table(summary: Any) -> Table:
    """A run's summary as a table, one row a task."""
    title = f"{summary.solved} of {len(summary.tasks)} tasks solved"
    if summary.clock:
        title += f"; times are {summary.clock}"
    table = Table(title=title, title_style="bold", box=box.SIMPLE)
    table.add_column("task", no_wrap=True)
    table.add_column("each turn", no_wrap=True)
    for header in ("speedup", "unseen"):
        table.add_column(header, justify="right", no_wrap=True)
    for task in summary.tasks:
        turns = zip(task.outcomes, task.rewards, strict=True)
        outcomes = "\n".join(
            f"{styled_outcome(name)} {'masked' if value is None else f'{value:.2f}'}"
            for name, value in turns
        )
        speedups = factor(task.speedup), factor(task.unseen_speedup)
        table.add_row(task.task, outcomes or "[dim]none[/]", *speedups)
    return table


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turns bad input into one line on standard error and exit code 2; our own faults raise."""
    try:
        yield
    except typer.Exit:
        raise
    except Exception as error:
        if not isinstance(error, _bad_input()):
            raise
        note(f"error: {error}")
        raise typer.Exit(BAD_INPUT) from None


def _bad_input() -> tuple[type[Exception], ...]:
    """The errors that only bad input causes."""
    from kernel_gym.benchmarks import BenchmarkError
    from kernel_gym.devices import UnknownDevice
    from kernel_gym.executors import UnknownExecutor
    from kernel_gym.exploits import ExploitError
    from kernel_gym.rewards import RewardError, UnknownReward
    from kernel_gym.store import StoreError
    from kernel_gym.tasks import SuiteError, TasksPathError, UnknownName
    from kernel_gym.tasks.small_floats import UnfitDevice
    from kernel_gym.training.config import ConfigError
    from kernel_gym.training.corpus import CorpusError
    from kernel_gym.training.policies import PolicyError

    names = (UnknownName, UnknownDevice, UnknownExecutor, UnknownReward)
    ours = (ConfigError, CorpusError, PolicyError)
    tasks = (SuiteError, TasksPathError, UnfitDevice)
    return (*names, *tasks, RewardError, StoreError, ExploitError, BenchmarkError, *ours)
