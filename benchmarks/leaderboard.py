"""`python -m benchmarks leaderboard`: plays this project's policies and builds their leaderboards.

The draws come from the seed alone, so everybody who repeats the command gets the same records. The
policies know no draw: they are fixed programs, or were trained with a secret of their own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from benchmarks.figures import BenchmarkEntry, FigureInterval, Subject, load_benchmarks
from benchmarks.marks import filled
from benchmarks.renewal import NewEntry, entry_maker, rounded, store
from kernel_gym.commands.common import console, messages, one_line_errors

if TYPE_CHECKING:
    from kernel_gym.analysis.estimators import Estimate
    from kernel_gym.report.leaderboard import Board, Row

DEVICE, SEED = "sim:gfx942", 0
COMMAND = "python -m benchmarks leaderboard"
PAGE = Path("docs/leaderboard.md")
HELD_OUT_GRAPHS, MAX_DEPTH = 200, 4
"""Held-out graphs that a writer is played on, and their most operators."""


@dataclass(frozen=True)
class Contest:
    """Policies that are played on one suite.

    Attributes:
        subject: The name of its results, and of the folder of its runs.
        title: The title of its results.
        suite: The suite's name, or its file.
        policies: The most submissions that each policy may make on a task.
        command: The command that plays it.
    """

    subject: str
    title: str
    suite: str
    policies: Mapping[str, int]
    command: str


QUICKSTART = Contest(
    "leaderboard",
    f"Policies without a model on the suite quickstart, {DEVICE}",
    "quickstart",
    {
        "baseline": 1,
        "examples": 3,
        "search": 8,
        "inductor": 1,
        "inductor:max-autotune": 1,
        "reflective:no-reflector:search": 8,
    },
    COMMAND,
)
WRITER = "leaderboard-writer"
"""The name of the results of a policy that writes kernels."""
BOOTSTRAP = "95 % bootstrap interval over tasks"
FIGURES = {
    "reward": ("Mean best reward", "reward", "modelled"),
    "execution_accuracy": ("Share of tasks with a correct kernel", "of tasks", "none"),
    "unseen_speedup_of_correct": ("Speedup of correct kernels, unseen shapes", "x", "modelled"),
}
"""Figures that are stored for each policy: metric, unit and clock."""


def leaderboard(
    out: Annotated[Path, typer.Option(help="Folder of the runs and of the sites.")] = Path("runs"),
    writer: Annotated[
        Path | None,
        typer.Option(help="Play the checkpoints of this run on held-out graphs instead."),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Parallel evaluations.")] = 2,
) -> None:
    """Play the policies that need no model, rank them, and store the figures.

    About ten minutes on two cores. A run that is there is continued. With `--writer`,
    play the checkpoints before and after GRPO beside TorchInductor on 200 held-out graphs.

    Example: python -m benchmarks leaderboard --writer runs/writer_gpu
    """
    from kernel_gym.report.leaderboard_pages import build_leaderboard

    with one_line_errors():
        contest = QUICKSTART if writer is None else writer_contest(writer, out)
        site = out / contest.subject / "site"
        new_entry = entry_maker(contest.subject)
        folders = _play(contest, out, workers)
        (board,) = build_leaderboard(list(folders.values()), site).boards
        results = leaderboard_figures(board, contest, new_entry)
        if writer is not None:
            faster = faster_than_compiler(folders, contest, new_entry)
            results = results.model_copy(update={"entries": (*results.entries, *faster)})
        store(contest.subject, results)
        stored = load_benchmarks().subjects[contest.subject]
        text = leaderboard_page(PAGE.read_text(encoding="utf-8"), stored)
        PAGE.write_text(text, encoding="utf-8")
    console.print(f"leaderboard: {site / 'index.html'}", highlight=False, soft_wrap=True)


def writer_contest(run: Path, out: Path, graphs: int = HELD_OUT_GRAPHS) -> Contest:
    """Returns the contest of a run's checkpoints on held-out graphs.

    Args:
        run: The folder of a finished run of `writer_gpu.toml`.
        out: The folder for the file of the suite.
        graphs: Number of graphs: half of them new, half with a new pair of operators.
    """
    from kernel_gym.training.graph_corpus import held_out_tasks
    from kernel_gym.training.train import FINAL, START

    suite = out / WRITER / "held_out.toml"
    suite.parent.mkdir(parents=True, exist_ok=True)
    tasks = json.dumps(held_out_tasks(graphs, MAX_DEPTH))  # a list looks the same in TOML
    summary = f"The first {graphs} held-out graphs of up to {MAX_DEPTH} operators."
    suite.write_text(
        f'name = "held-out-graphs"\nsummary = "{summary}"\ntasks = {tasks}\n', encoding="utf-8"
    )
    return Contest(
        WRITER,
        f"A policy that writes kernels on {graphs} held-out graphs, {DEVICE}",
        str(suite),
        {"baseline": 1, f"hf:{run / START}": 1, f"hf:{run / FINAL}": 1, "inductor": 1},
        f"{COMMAND} --writer runs/writer_gpu",
    )


def _play(contest: Contest, out: Path, workers: int) -> dict[str, Path]:
    """Plays every policy that has no finished run, or continues it. Returns folders by policy."""
    from kernel_gym.executors import make_executor
    from kernel_gym.policies import evaluate_policy
    from kernel_gym.storage.run_store import CONFIG, RunStore
    from kernel_gym.storage.secret import PUBLIC

    folders = {}
    arguments = {"device": DEVICE, "seed": SEED, "secret": PUBLIC, "workers": workers}
    with make_executor("local", **arguments) as executor:
        for policy, turns in contest.policies.items():
            folder = out / contest.subject / _slug(policy)
            folders[policy] = folder
            if (folder / CONFIG).exists() and not RunStore(folder).unfinished():
                continue
            messages.print(f"{policy}: {folder}", soft_wrap=True)
            evaluate_policy(
                policy,
                contest.suite,
                turns=turns,
                executor=executor,
                out=folder,
                resume=(folder / CONFIG).exists(),
                command=contest.command,
            )
    return folders


def leaderboard_figures(board: Board, contest: Contest, new_entry: NewEntry) -> Subject:
    """Returns the figures of a board: three for each policy, one for each pair of neighbours.

    Args:
        board: The runs, ranked.
        contest: What was played.
        new_entry: Makes an entry of the contest's subject, with machine, commit and date filled in.
    """

    def entry_of(id: str, **fields: Any) -> BenchmarkEntry:
        return new_entry(id=f"{contest.subject}-{id}", command=contest.command, **fields)

    rows = [entry for row in board.rows for entry in _row_entries(row, entry_of)]
    pairs = [
        entry_of(
            id=f"{_slug(upper.policy)}-before-{_slug(lower.policy)}",
            metric=f"{upper.policy} before {lower.policy}: mean difference of the reward",
            **_figure(upper.below.difference, "95 % bootstrap interval, paired over tasks"),
            unit="reward",
            clock="modelled",
            note=f"Sign-flip test over tasks: p = {upper.below.p_value:.3g}, corrected by Holm.",
        )
        for upper, lower in zip(board.rows[:-1], board.rows[1:], strict=True)
        if upper.below is not None
    ]
    return Subject(title=contest.title, entries=(*rows, *pairs))


def faster_than_compiler(
    folders: Mapping[str, Path], contest: Contest, new_entry: NewEntry
) -> Iterator[BenchmarkEntry]:
    """Yields, for each checkpoint, the share of graphs on which its kernel beats TorchInductor's.

    Args:
        folders: The run folder of each policy.
        contest: What was played.
        new_entry: Makes an entry of the contest's subject.
    """
    from kernel_gym.analysis.metrics import attempts, mean_over
    from kernel_gym.storage.run_store import RunStore

    compiled = {own.task: own.speedup for own in attempts(RunStore(folders["inductor"]))}
    for policy, folder in folders.items():
        if not policy.startswith("hf:"):
            continue
        own = [[each] for each in attempts(RunStore(folder)) if each.task in compiled]
        share = mean_over(own, lambda each: float(each.speedup > compiled[each.task]))
        yield new_entry(
            id=f"{contest.subject}-{_slug(policy)}-faster",
            metric=f"Graphs with a correct kernel that is faster than TorchInductor's, {policy}",
            **_figure(share, BOOTSTRAP),
            unit="of graphs",
            clock="modelled",
            command=contest.command,
        )


def _row_entries(row: Row, new_entry: NewEntry) -> Iterator[BenchmarkEntry]:
    for name, (metric, unit, clock) in FIGURES.items():
        if row.figures[name].value is None:  # no kernel is right
            continue
        yield new_entry(
            id=f"{_slug(row.policy)}-{name.replace('_', '-')}",
            metric=f"{metric}, {row.policy}, {row.submissions} submissions",
            **_figure(row.figures[name], BOOTSTRAP),
            unit=unit,
            clock=clock,
        )


def _figure(estimate: Estimate, kind: str) -> dict[str, object]:
    value = rounded(estimate.value or 0.0, 3)
    if estimate.low is None or estimate.high is None:
        return {"value": value}
    ends = {"low": rounded(estimate.low, 3), "high": rounded(estimate.high, 3)}
    return {"value": value, "interval": FigureInterval(**ends, kind=kind)}


def _slug(policy: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", policy)


def leaderboard_page(text: str, subject: Subject) -> str:
    """Returns the page with a new table.

    Args:
        text: The page as it is.
        subject: The stored figures of one contest.

    Raises:
        InputError: The page lacks its mark.
    """
    lines = ["| figure | value | 95 % interval | clock |", "|---|--:|--:|---|"]
    for entry in subject.entries:
        ends = f"{entry.interval.low} to {entry.interval.high}" if entry.interval else "-"
        metric = f"{entry.metric}<br>{entry.note}" if entry.note else entry.metric
        clock = "-" if entry.clock == "none" else entry.clock
        lines.append(f"| {metric} | {entry.value} {entry.unit} | {ends} | {clock} |")
    first = subject.entries[0]
    return filled(PAGE, text, first.subject, first.command, "\n".join(lines) + "\n")
