"""`kernel-gym leaderboard`: one HTML file that compares runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernel_gym.commands.common import console, messages, one_line_errors


def leaderboard(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders.")],
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("leaderboard.html"),
) -> None:
    """Write a page that ranks runs by suite, each with the command that repeats it.

    Example: kernel-gym leaderboard runs/* --out leaderboard.html
    """
    from kernel_gym.report.leaderboard import write_leaderboard

    with one_line_errors(), messages.status("writing the leaderboard"):
        write_leaderboard(folders, out)
    console.print(f"leaderboard: {out}", highlight=False, soft_wrap=True)
