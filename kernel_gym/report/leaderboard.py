"""A leaderboard that can be checked: a static site that is made of run folders.

The site holds the records and sources of each run, so that a reader can repeat any cell. Runs are
ranked only against runs of the same tasks, device, clock, reward and versions of the rules.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path

from kernel_gym.analysis.estimators import Estimate, paired, sign_flip
from kernel_gym.analysis.metrics import EpisodeAttempt, attempts, by_task, headline, unseen_speedup
from kernel_gym.analysis.record_checks import RunFacts, checked_run
from kernel_gym.analysis.replay import write_rescored
from kernel_gym.episodes.history import best_turn
from kernel_gym.errors import InputError
from kernel_gym.inert import inert_line
from kernel_gym.judge.protocol import PROTOCOL_VERSION
from kernel_gym.storage.json_lines import StoreError, append_line
from kernel_gym.storage.run_records import TurnRecord
from kernel_gym.storage.run_store import SESSIONS, RunStore
from kernel_gym.storage.secret import SECRET

SITE_JSON = "leaderboard.json"
"""The file of the figures. It also marks a folder as a leaderboard, which may be written again."""
FIGURES = ("reward", "execution_accuracy", "fast_1", "geometric_speedup_of_correct")
"""The figures of a row from the headline of a run; the unseen speedup is added."""
MAX_P_VALUE = 0.05
"""The corrected p-value up to which two neighbours differ."""


@dataclass(frozen=True)
class Cell:
    """The best submission of a run on a task, or the last one if none is right."""

    record: TurnRecord
    reward: float
    """Mean over the attempts of the highest reward of each."""
    page: str


@dataclass(frozen=True)
class NeighbourTest:
    """A comparison of a row with the row below it, task by task."""

    difference: Estimate
    """Mean difference of the reward; the interval is a paired bootstrap over tasks."""
    p_value: float
    """The p-value of a sign-flip test, corrected for the number of neighbours (Holm 1979)."""

    @property
    def apart(self) -> bool:
        """Whether the test tells the two rows apart."""
        return self.p_value <= MAX_P_VALUE


@dataclass(frozen=True)
class Row:
    """One run."""

    run: str
    """The folder of its records in the site."""
    policy: str
    suite: str
    figures: dict[str, Estimate]
    solved: int
    turns: int
    samples: int
    unfinished: int
    submissions: int
    seed: int | None
    command: str
    facts: RunFacts
    cells: dict[str, Cell]
    below: NeighbourTest | None = None


@dataclass(frozen=True)
class Board:
    """Runs that can be compared: the same tasks, device, clock, reward and versions."""

    tasks: tuple[str, ...]
    device: str
    clock: str
    reward: str
    protocol: str
    timing_model: str
    rows: tuple[Row, ...] = ()

    @property
    def ranked(self) -> bool:
        """Whether the runs followed today's rules. Others are listed and not ranked."""
        return self.protocol == PROTOCOL_VERSION


@dataclass(frozen=True)
class RefusedRun:
    """A folder whose figures do not follow from its records."""

    folder: str
    reason: str


@dataclass(frozen=True)
class Leaderboard:
    """Everything that the site shows."""

    boards: tuple[Board, ...]
    refused: tuple[RefusedRun, ...]

    def as_dict(self) -> dict[str, object]:
        """Returns plain data for JSON, without the records."""
        return {
            "boards": [_plain_board(board) for board in self.boards],
            "refused": [asdict(run) for run in self.refused],
        }


def rank_runs(folders: Sequence[Path], out: Path) -> Leaderboard:
    """Checks and ranks runs, and copies their records into the folder of a site.

    Arguments, result and errors are those of `leaderboard_pages.build_leaderboard`.
    """
    _clear(out)
    groups: dict[Board, list[Row]] = defaultdict(list)
    refused = []
    for number, folder in enumerate(folders, start=1):
        try:
            store, facts = checked_run(folder)
            row = _row(store, facts, f"run-{number}", out)
        except StoreError as error:
            reason = inert_line(str(error).removeprefix(f"{folder}: "))
            refused.append(RefusedRun(inert_line(folder.name), reason))
            continue
        key = Board(
            tasks=tuple(sorted(store.config.tasks)),
            device=facts.device,
            clock=str(facts.clock),
            reward=store.config.reward,
            protocol=facts.protocol,
            timing_model=facts.timing_model,
        )
        groups[key].append(row)
    boards = [_ranked(replace(key, rows=tuple(rows))) for key, rows in groups.items()]
    return Leaderboard(tuple(sorted(boards, key=lambda b: not b.ranked)), tuple(refused))


def _clear(out: Path) -> None:
    """Empties the folder of an earlier leaderboard."""
    if out.exists() and not out.is_dir():
        raise InputError(f"{out}: found a file, expected a folder")
    if not (out / SITE_JSON).is_file() and out.is_dir() and any(out.iterdir()):
        raise InputError(f"{out} holds something else than a leaderboard: name another folder")
    out.mkdir(parents=True, exist_ok=True)
    for run in out.glob("run-*"):
        shutil.rmtree(run)


def _row(store: RunStore, facts: RunFacts, run: str, out: Path) -> Row:
    """Copies the records of a run into the site and computes its figures."""
    config, finished, sessions = store.config, attempts(store), store.sessions()
    copy = write_rescored(store, store.records(), config.reward, out / run)
    (out / run / SECRET).chmod(0o644)  # it has done its duty: readers need it to replay
    for session in sessions:
        append_line(out / run / SESSIONS, session)
    groups = by_task(finished)
    figures = headline(finished)
    return Row(
        run=run,
        policy=inert_line(config.policy, 200),
        suite=inert_line(config.suite, 200),
        figures={name: figures[name] for name in FIGURES}
        | {"unseen_speedup_of_correct": unseen_speedup(finished)},
        solved=sum(any(a.correct for a in own) for own in groups.values()),
        turns=config.turns,
        samples=config.samples,
        unfinished=len(store.unfinished()),
        submissions=len(store.records()),
        seed=config.seed,
        command=inert_line(sessions[0].command) if sessions else "",
        facts=facts,
        cells=dict(_cells(copy, groups, run)),
    )


def _cells(
    store: RunStore, groups: dict[str, list[EpisodeAttempt]], run: str
) -> list[tuple[str, Cell]]:
    cells = []
    for number, task in enumerate(sorted(store.config.tasks), start=1):
        turns = store.turns(task)
        if task in groups and turns:
            reward = sum(a.reward for a in groups[task]) / len(groups[task])
            page = f"{run}/cells/{number}.html"
            cells.append((task, Cell(best_turn(turns) or turns[-1], reward, page)))
    return cells


def _ranked(board: Board) -> Board:
    """Orders the rows by reward and tests each against the next one."""
    rows = sorted(board.rows, key=lambda row: (bool(row.unfinished), -(_reward(row))))
    if not board.ranked:
        return replace(board, rows=tuple(rows))
    tests = {}
    for place, (upper, lower) in enumerate(pairwise(rows)):
        if not upper.unfinished and not lower.unfinished:
            tests[place] = _test(upper, lower, board.tasks)
    corrected = _holm([test.p_value for test in tests.values()])
    for (place, test), p_value in zip(tests.items(), corrected, strict=True):
        rows[place] = replace(rows[place], below=replace(test, p_value=p_value))
    return replace(board, rows=tuple(rows))


def _reward(row: Row) -> float:
    return row.figures["reward"].value or 0.0


def _test(upper: Row, lower: Row, tasks: Sequence[str]) -> NeighbourTest:
    """Compares two rows over all tasks. A task without a submission has the reward 0."""
    below, above = (
        [row.cells[task].reward if task in row.cells else 0.0 for task in tasks]
        for row in (lower, upper)
    )
    return NeighbourTest(paired(below, above), sign_flip(below, above))


def _holm(p_values: Sequence[float]) -> list[float]:
    """Adjusts p-values by S. Holm's rule (Scandinavian Journal of Statistics 6, 1979)."""
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = largest
    return adjusted


def _plain_board(board: Board) -> dict[str, object]:
    rows = [
        {
            **{
                n: v
                for n, v in vars(row).items()
                if n not in ("figures", "facts", "cells", "below")
            },
            "figures": {name: asdict(value) for name, value in row.figures.items()},
            "records_sha256": row.facts.digest,
            "secret_sha256": row.facts.secret_sha256,
            "against_next": asdict(row.below) if row.below else None,
            "cells": {task: _plain_cell(cell) for task, cell in row.cells.items()},
        }
        for row in board.rows
    ]
    names = ("tasks", "device", "clock", "reward", "protocol", "timing_model", "ranked")
    return {name: getattr(board, name) for name in names} | {"rows": rows}


def _plain_cell(cell: Cell) -> dict[str, object]:
    evaluation = cell.record.evaluation
    return {
        "reward": cell.reward,
        "outcome": str(evaluation.outcome),
        "speedup": evaluation.speedup,
        "unseen_speedup": evaluation.unseen_speedup,
        "source": cell.record.source,
        "source_sha256": evaluation.source_sha256,
        "page": cell.page,
    }
