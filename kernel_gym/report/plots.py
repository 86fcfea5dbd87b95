"""Plots of attempts: how many are correct, how fast, and after how many turns."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from kernel_gym.report.drawing import (
    BAD,
    FAINT,
    LINE,
    SEEN,
    UNSEEN,
    anchor,
    draw_svg,
    legend_above,
    linked_dots,
    share_axis,
    speedup_axis,
)
from kernel_gym.report.figures import Row, Tables

_HEIGHT = 3.4
_BINS = np.geomspace(0.1, 10, 21)


def fast_p_curve(tables: Tables, clock: str) -> str:
    """Plots fast_p: the share of attempts that are correct and more than p times as fast, over p.

    Args:
        tables: A run's figures, with at least one attempt.
        clock: What the times are: modelled or measured.

    Returns:
        An `svg` element.
    """
    attempts = [row["speedup"] or 0.0 for row in tables["attempts"]]
    steps = sorted({speedup for speedup in attempts if speedup})
    marks = [row for row in tables["fast_p"] if row["p"] and row["low"] is not None]

    def share(p: float) -> float:
        return sum(speedup > p for speedup in attempts) / len(attempts)

    def draw(axes: Axes) -> None:
        edges = [0.09, *steps, 11.0]
        axes.plot(edges, [share(p) for p in edges], drawstyle="steps-post", color=SEEN, linewidth=2)
        for row in marks:
            axes.plot([row["p"]] * 2, [row["low"], row["high"]], color=SEEN, alpha=0.35, lw=4)
        axes.axvline(1, color=FAINT, linestyle="--", linewidth=1, zorder=0)
        axes.grid(axis="y")
        speedup_axis(axes, "x")
        share_axis(axes, "y")
        axes.set_xlabel(f"p, times as fast as the baseline ({clock})")
        axes.set_ylabel("share of all attempts")

    return draw_svg(draw, _HEIGHT, "fast-p", "fast_p over p")


def speedup_distribution(tables: Tables, clock: str) -> str:
    """Plots how many attempts reached which speedup, and how many failed.

    Args:
        tables: A run's figures.
        clock: What the times are.

    Returns:
        An `svg` element.
    """
    right = [row for row in tables["attempts"] if row["speedup"]]
    wrong = len(tables["attempts"]) - len(right)

    def counts(name: str) -> Any:
        return np.histogram([row[name] for row in right if row[name]], _BINS)[0]

    def draw(axes: Axes) -> None:
        if wrong:
            axes.bar(0.072, wrong, width=0.025, color=BAD, alpha=0.8, label="not right")
        axes.stairs(counts("speedup"), _BINS, fill=True, color=SEEN, alpha=0.55, label="train")
        axes.stairs(counts("unseen_speedup"), _BINS, color=UNSEEN, linewidth=2, label="unseen")
        axes.axvline(1, color=FAINT, linestyle="--", linewidth=1, zorder=0)
        axes.grid(axis="y")
        speedup_axis(axes, "x", 0.055 if wrong else 0.09)
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.set_xlabel(f"speedup over the baseline ({clock})")
        axes.set_ylabel("attempts")
        legend_above(axes, 3)

    return draw_svg(draw, _HEIGHT, "speedups", "histogram of speedups")


def speedup_by_task(tables: Tables, clock: str) -> str:
    """Plots each task's speedup on train and on unseen workloads.

    Args:
        tables: A run's figures, with at least one solved task.
        clock: What the times are.

    Returns:
        An `svg` element.
    """
    tasks = list(reversed(tables["tasks"]))
    unsolved = [row for row, task in enumerate(tasks) if task["speedup"] is None]

    def points(name: str) -> list[tuple[float, float, str]]:
        return [(t[name], row, t["task"]) for row, t in enumerate(tasks) if t[name]]

    def draw(axes: Axes) -> None:
        for row, task in enumerate(tasks):
            if task["speedup"] and task["unseen_speedup"]:
                span = [task["speedup"], task["unseen_speedup"]]
                axes.plot(span, [row, row], color=FAINT, linewidth=1.5, alpha=0.6, zorder=1)
        linked_dots(axes, points("speedup"), SEEN, "o", "train")
        linked_dots(axes, points("unseen_speedup"), UNSEEN, "D", "unseen")
        if unsolved:
            axes.plot([1.0] * len(unsolved), unsolved, "x", color=BAD, label="not solved")
        axes.axvline(1, color=FAINT, linestyle="--", linewidth=1, zorder=0)
        axes.set_yticks(range(len(tasks)), [task["task"] for task in tasks])
        for label, task in zip(axes.get_yticklabels(), tasks, strict=True):
            label.set_url(f"#{anchor(task['task'])}")
        axes.tick_params(axis="y", length=0, labelsize=9)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="y", color=LINE)
        axes.set_ylim(-0.6, len(tasks) - 0.4)
        speedup_axis(axes, "x", 0.09)
        axes.set_xlabel(f"speedup over the baseline ({clock})")
        legend_above(axes, 3)

    return draw_svg(draw, 1.1 + 0.26 * len(tasks), "by-task", "speedup of each task")


def solved_by_turn(tables: Tables) -> str:
    """Plots the share of attempts that are correct by each turn: at once, or after a repair.

    Args:
        tables: A run's figures, with at least one turn.

    Returns:
        An `svg` element.
    """
    turns = tables["trajectory"]
    first = turns[0]["solved"]

    def draw(axes: Axes) -> None:
        numbers = [row["turn"] for row in turns]
        rescued = [row["solved"] - first for row in turns]
        axes.bar(numbers, [first] * len(turns), 0.6, color=SEEN, alpha=0.8, label="persistent")
        axes.bar(numbers, rescued, 0.6, [first] * len(turns), color=UNSEEN, label="rescued")
        of_turn = [row["execution_accuracy"] for row in turns]
        axes.plot(numbers, of_turn, "D:", color=FAINT, markersize=5, label="of that turn")
        axes.grid(axis="y")
        share_axis(axes, "y")
        _turns(axes, numbers)
        axes.set_ylabel("share of attempts")
        legend_above(axes, 3)

    return draw_svg(draw, _HEIGHT, "solved", "share solved by turn")


def speed_by_turn(tables: Tables, clock: str) -> str:
    """Plots the best speedup so far by turn, for attempts correct at once and repaired ones.

    Args:
        tables: A run's figures, with at least one solved task.
        clock: What the times are.

    Returns:
        An `svg` element.
    """
    turns = tables["trajectory"]

    def line(axes: Axes, name: str, color: str, marker: str) -> None:
        reached: list[Row] = [row for row in turns if row[f"{name}_speedup"]]
        where = [row["turn"] for row in reached]
        speedups = [row[f"{name}_speedup"] for row in reached]
        if reached:
            axes.plot(where, speedups, f"{marker}-", color=color, linewidth=2, label=name)

    def draw(axes: Axes) -> None:
        line(axes, "persistent", SEEN, "o")
        line(axes, "rescued", UNSEEN, "D")
        axes.axhline(1, color=FAINT, linestyle="--", linewidth=1, zorder=0)
        axes.grid(axis="y")
        speedup_axis(axes, "y")
        _turns(axes, [row["turn"] for row in turns])
        axes.set_ylabel(f"best speedup so far ({clock})")
        legend_above(axes, 2)

    return draw_svg(draw, _HEIGHT, "speed-by-turn", "best speedup by turn")


def _turns(axes: Axes, numbers: list[int]) -> None:
    axes.set_xlim(numbers[0] - 0.6, numbers[-1] + 0.6)
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.set_xlabel("turn")
