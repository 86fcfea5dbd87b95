"""`kernel-gym leaderboard`: a static site that compares runs and can be checked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernel_gym.commands.common import (
    FAILED,
    JsonOption,
    console,
    messages,
    note,
    one_line_errors,
    print_json,
)


def leaderboard(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders.")],
    out: Annotated[Path, typer.Option(file_okay=False, help="The folder of the site.")] = Path(
        "leaderboard"
    ),
    json: JsonOption = False,
) -> None:
    """Build a site that ranks runs, with their records and the command that repeats each cell.

    The site publishes the sources and the secrets of the runs, so play no new run with such a
    secret. Exit code 1: a run was refused, because its figures do not follow from its records.

    Example: kernel-gym leaderboard runs/* --out leaderboard
    """
    from kernel_gym.report.leaderboard_pages import build_leaderboard

    with one_line_errors(), messages.status("writing the leaderboard"):
        board = build_leaderboard(folders, out)
    for run in board.refused:
        note(f"refused: {run.folder}: {run.reason}")
    if json:
        print_json(board.as_dict())
    else:
        console.print(f"leaderboard: {out / 'index.html'}", highlight=False, soft_wrap=True)
    if board.refused:
        raise typer.Exit(FAILED)
