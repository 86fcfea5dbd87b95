"""`python -m benchmarks leaderboard`: plays this project's policies and builds their leaderboard.

The draws come from the seed alone, so everybody who repeats the command gets the same records. The
policies are fixed programs that know no draw; a leaderboard of models needs a run's own secret.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchmarks.figures import BenchmarkEntry, FigureInterval, Subject, load_benchmarks
from benchmarks.marks import filled
from benchmarks.renewal import NewEntry, entry_maker, rounded, store
from kernel_gym.commands.common import console, messages, one_line_errors

if TYPE_CHECKING:
    from kernel_gym.analysis.estimators import Estimate
    from kernel_gym.report.leaderboard import Board, Row

POLICIES = {
    "baseline": 1,
    "examples": 3,
    "search": 8,
    "inductor": 1,
    "reflective:no-reflector:search": 8,
}
"""Policies with the most submissions that each may make on a task."""
SUITE, DEVICE, SEED = "quickstart", "sim:gfx942", 0
COMMAND = "python -m benchmarks leaderboard"
SUBJECT = "leaderboard"
PAGE = Path("docs/leaderboard.md")
BOOTSTRAP = "95 % bootstrap interval over tasks"
FIGURES = {
    "reward": ("Mean best reward", "reward", "modelled"),
    "execution_accuracy": ("Share of tasks with a right kernel", "of tasks", "none"),
    "unseen_speedup_of_correct": ("Speedup of right kernels, unseen shapes", "x", "modelled"),
}
"""Figures that are stored for each policy: metric, unit and clock."""


def leaderboard(
    out: Annotated[Path, typer.Option(help="Folder of the runs and of the site.")] = Path(
        "runs/leaderboard"
    ),
) -> None:
    """Play start kernels, examples, search and the reflective agent, rank them, store the figures.

    About four minutes on two cores. A run that is finished is not played again.

    Example: python -m benchmarks leaderboard
    """
    from kernel_gym.report.leaderboard_pages import build_leaderboard

    with one_line_errors():
        (board,) = build_leaderboard(_play(out), out / "site").boards
        store(SUBJECT, leaderboard_figures(board, entry_maker(SUBJECT)))
        text = leaderboard_page(
            PAGE.read_text(encoding="utf-8"), load_benchmarks().subjects[SUBJECT]
        )
        PAGE.write_text(text, encoding="utf-8")
    console.print(f"leaderboard: {out / 'site/index.html'}", highlight=False, soft_wrap=True)


def _play(out: Path) -> list[Path]:
    """Plays every policy that has no finished run, and returns the run folders."""
    from kernel_gym.executors import make_executor
    from kernel_gym.policies import evaluate_policy
    from kernel_gym.storage.run_store import CONFIG, RunStore
    from kernel_gym.storage.secret import PUBLIC

    folders = []
    with make_executor("inline", device=DEVICE, seed=SEED, secret=PUBLIC) as executor:
        for policy, turns in POLICIES.items():
            folder = out / policy.replace(":", "-")
            folders.append(folder)
            if (folder / CONFIG).exists() and not RunStore(folder).unfinished():
                continue
            messages.print(f"{policy}: {folder}", soft_wrap=True)
            evaluate_policy(
                policy,
                SUITE,
                turns=turns,
                executor=executor,
                out=folder,
                overwrite=True,
                command=COMMAND,
            )
    return folders


def leaderboard_figures(board: Board, new_entry: NewEntry) -> Subject:
    """Returns the figures of a board: three for each policy, one for each pair of neighbours.

    Args:
        board: The runs, ranked.
        new_entry: Makes an entry of this subject, with machine, commit and date filled in.
    """
    rows = [entry for row in board.rows for entry in _row_entries(row, new_entry)]
    pairs = [
        new_entry(
            id=f"leaderboard-{_slug(upper)}-before-{_slug(lower)}",
            metric=f"{upper.policy} before {lower.policy}: mean difference of the reward",
            **_figure(upper.below.difference, "95 % bootstrap interval, paired over tasks"),
            unit="reward",
            clock="modelled",
            command=COMMAND,
            note=f"Sign-flip test over tasks: p = {upper.below.p_value:.3g}, corrected by Holm.",
        )
        for upper, lower in zip(board.rows[:-1], board.rows[1:], strict=True)
        if upper.below is not None
    ]
    title = f"Policies without a model on the suite {SUITE}, {DEVICE}"
    return Subject(title=title, entries=(*rows, *pairs))


def _row_entries(row: Row, new_entry: NewEntry) -> Iterator[BenchmarkEntry]:
    for name, (metric, unit, clock) in FIGURES.items():
        if row.figures[name].value is None:  # no kernel is right
            continue
        yield new_entry(
            id=f"leaderboard-{_slug(row)}-{name.replace('_', '-')}",
            metric=f"{metric}, {row.policy}, {row.submissions} submissions",
            **_figure(row.figures[name], BOOTSTRAP),
            unit=unit,
            clock=clock,
            command=COMMAND,
        )


def _figure(estimate: Estimate, kind: str) -> dict[str, object]:
    value = rounded(estimate.value or 0.0, 3)
    if estimate.low is None or estimate.high is None:
        return {"value": value}
    ends = {"low": rounded(estimate.low, 3), "high": rounded(estimate.high, 3)}
    return {"value": value, "interval": FigureInterval(**ends, kind=kind)}


def _slug(row: Row) -> str:
    return row.policy.replace(":", "-")


def leaderboard_page(text: str, subject: Subject) -> str:
    """Returns the page with a new table.

    Args:
        text: The page as it is.
        subject: The stored figures.

    Raises:
        InputError: The page lacks its mark.
    """
    lines = ["| figure | value | 95 % interval | clock |", "|---|--:|--:|---|"]
    for entry in subject.entries:
        ends = f"{entry.interval.low} to {entry.interval.high}" if entry.interval else "-"
        metric = f"{entry.metric}<br>{entry.note}" if entry.note else entry.metric
        clock = "-" if entry.clock == "none" else entry.clock
        lines.append(f"| {metric} | {entry.value} {entry.unit} | {ends} | {clock} |")
    return filled(PAGE, text, "figures", COMMAND, "\n".join(lines) + "\n")
