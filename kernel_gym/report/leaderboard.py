"""A static leaderboard: run folders as rows, with intervals and the command that repeats each.

Runs on different suites, devices or clocks are never ranked against each other: each has a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kernel_gym.analysis.breakdown import run_metrics
from kernel_gym.analysis.summary import summarise
from kernel_gym.formatting import factor, percent
from kernel_gym.storage.run_store import RunStore

COLUMNS = ("execution_accuracy", "fast_1", "geometric_speedup_of_correct", "speed_of_light")
"""The figures of a row, from the headline of a run's metrics."""


@dataclass(frozen=True)
class Row:
    """One run."""

    policy: str
    folder: str
    solved: str
    reward: dict[str, Any]
    figures: dict[str, dict[str, Any]]
    turns: int
    samples: int
    unfinished: int
    command: str


@dataclass(frozen=True)
class Board:
    """Runs that can be compared: one suite, device, clock and reward."""

    suite: str
    device: str
    clock: str
    reward: str
    rows: list[Row]


def boards(folders: Sequence[Path]) -> list[Board]:
    """Reads runs and ranks them by mean best reward.

    Args:
        folders: Run folders.

    Returns:
        A board for each suite, device, clock and reward, the best run first.

    Raises:
        StoreError: A folder holds no run.
    """
    grouped: dict[tuple[str, str, str, str], list[Row]] = {}
    for folder in folders:
        store = RunStore(folder)
        summary, headline = summarise(store), run_metrics(store)["headline"]
        config, sessions = store.config, store.sessions()
        row = Row(
            policy=config.policy,
            folder=folder.name,
            solved=f"{summary.solved} of {len(summary.tasks)}",
            reward=headline["reward"],
            figures={name: headline[name] for name in COLUMNS},
            turns=config.turns,
            samples=config.samples,
            unfinished=summary.unfinished,
            command=sessions[0].command if sessions else "",
        )
        key = (config.suite, config.device, str(summary.clock or "no times"), config.reward)
        grouped.setdefault(key, []).append(row)
    return [
        Board(*key, sorted(rows, key=lambda row: -(row.reward["value"] or 0.0)))
        for key, rows in sorted(grouped.items())
    ]


def write_leaderboard(folders: Sequence[Path], out: Path) -> None:
    """Writes the leaderboard as one HTML file without scripts.

    Args:
        folders: Run folders.
        out: The file.

    Raises:
        StoreError: A folder holds no run.
    """
    environment = Environment(
        loader=PackageLoader("kernel_gym.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    text = environment.get_template("leaderboard.html.j2").render(
        boards=boards(folders),
        columns=COLUMNS,
        cell=_cell,
        styles=Markup((Path(__file__).parent / "report.css").read_text(encoding="utf-8")),
    )
    out.write_text(text, encoding="utf-8")


def _cell(name: str, figure: dict[str, Any]) -> str:
    """A figure with its 95 % interval over tasks."""
    text = factor if "speedup" in name else (lambda v: f"{v:.3f}") if name == "reward" else percent
    if figure["value"] is None:
        return "-"
    if figure.get("low") is None:
        return text(figure["value"])
    return f"{text(figure['value'])} ({text(figure['low'])} to {text(figure['high'])})"
