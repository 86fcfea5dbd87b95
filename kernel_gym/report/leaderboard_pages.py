"""The pages of a leaderboard: ranks and cells in one page, and a page for each cell."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from kernel_gym.analysis.estimators import Estimate
from kernel_gym.formatting import NOTHING, factor, percent
from kernel_gym.judge.protocol import PROTOCOL_VERSION
from kernel_gym.report.code import highlight_source
from kernel_gym.report.leaderboard import (
    MAX_P_VALUE,
    SITE_JSON,
    Board,
    Cell,
    Leaderboard,
    Row,
    rank_runs,
)
from kernel_gym.storage.json_lines import write_whole
from kernel_gym.storage.run_store import SUFFIX, RunStore

COLUMNS = {
    "reward": ("mean best reward", lambda value: f"{value:.3f}"),
    "execution_accuracy": ("right", percent),
    "fast_1": ("right and faster", percent),
    "geometric_speedup_of_correct": ("speedup of right", factor),
    "unseen_speedup_of_correct": ("on unseen shapes", factor),
}
"""The title of each figure of a row, and how it is written."""


def build_leaderboard(folders: Sequence[Path], out: Path) -> Leaderboard:
    """Writes the site: the records of each run, a page of ranks and a page for each cell.

    Args:
        folders: Run folders. What is in them is checked and never executed.
        out: The folder of the site. It must be new, empty, or an earlier leaderboard.

    Returns:
        The figures. Runs that cannot be checked are refused with a reason.

    Raises:
        InputError: The folder of the site holds something else.
    """
    board = rank_runs(folders, out)
    _write_pages(board, out)
    return board


def _write_pages(board: Leaderboard, out: Path) -> None:
    environment = Environment(
        loader=PackageLoader("kernel_gym.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        styles=Markup((Path(__file__).parent / "report.css").read_text(encoding="utf-8")),
        columns=COLUMNS,
        value=_value,
        interval=_interval,
        p_text=_p_value,
        replay=_replay,
        protocol=PROTOCOL_VERSION,
        max_p_value=MAX_P_VALUE,
    )
    page = environment.get_template("leaderboard_cell.html.j2")
    for each in board.boards:
        for row in each.rows:
            _write_cells(each, row, page, out)
    index = environment.get_template("leaderboard.html.j2").render(board=board)
    write_whole(out / "index.html", index)
    write_whole(out / SITE_JSON, json.dumps(board.as_dict(), indent=1, allow_nan=False) + "\n")


def _write_cells(board: Board, row: Row, page: Template, out: Path) -> None:
    store = RunStore(out / row.run)
    (out / row.run / "cells").mkdir(exist_ok=True)
    for task, cell in row.cells.items():
        hip = cell.record.source.endswith(SUFFIX["hip"])
        text = page.render(
            board=board,
            row=row,
            task=task,
            cell=cell,
            turns=store.turns(task),
            source=highlight_source(store.source(cell.record), "hip" if hip else "triton"),
        )
        (out / cell.page).write_text(text, encoding="utf-8")


def _replay(row: Row, cell: Cell | None = None) -> str:
    """Returns the command that judges a run again, or one task of it."""
    task = ["--task", cell.record.task] if cell else []
    return shlex.join(["kernel-gym", "replay", row.run, *task])


def _value(name: str, figure: Estimate) -> str:
    """Returns the text of a figure."""
    return NOTHING if figure.value is None else COLUMNS[name][1](figure.value)


def _interval(name: str, figure: Estimate) -> str:
    """Returns the text of its 95 % interval over tasks; empty without one."""
    text = COLUMNS[name][1]
    if figure.low is None or figure.high is None:
        return ""
    return f"{text(figure.low)} to {text(figure.high)}"


def _p_value(p_value: float) -> str:
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"
