"""The plots, as SVG that takes its colours and fonts from the page around it."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from kernel_gym.summary import RunSummary, TaskSummary

# Matplotlib knows no CSS variables: it draws with these colours, which are then replaced by them.
INK, FAINT, SEEN, UNSEEN = "#010101", "#020202", "#030303", "#040404"
_VARIABLES = {INK: "--ink", FAINT: "--faint", SEEN: "--seen", UNSEEN: "--unseen"}
_TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10)
_POINTS_A_DECADE = 130
_LABEL_POINTS = 10
_ODD_RATIO = 1.15
_SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "kernel-gym",
    "font.family": "sans-serif",
    "font.size": 11,
    "text.color": INK,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
}


def speedup_by_task(summary: RunSummary) -> str:
    """Dots by task: the speedup on the train workloads and on the unseen ones, log scale.

    Args:
        summary: A run with at least one solved task.

    Returns:
        An `svg` element.
    """
    tasks = list(reversed(summary.tasks))
    unsolved = [row for row, task in enumerate(tasks) if task.speedup is None]

    def draw(axes: Axes) -> None:
        for row, task in enumerate(tasks):
            if task.speedup and task.unseen_speedup:
                axes.plot([task.speedup, task.unseen_speedup], [row, row], color=FAINT, zorder=1)
        _dots(axes, tasks, lambda row, task: (task.speedup, row), "train workloads", SEEN, "o")
        _dots(axes, tasks, lambda row, task: (task.unseen_speedup, row), "unseen", UNSEEN, "D")
        if unsolved:
            crosses = [1.0] * len(unsolved)
            axes.plot(crosses, unsolved, "x", color=FAINT, label="not solved")
        axes.axvline(1, color=FAINT, linestyle="--", linewidth=1, zorder=0)
        axes.set_yticks(range(len(tasks)), [task.task for task in tasks])
        axes.set_ylim(-0.6, len(tasks) - 0.4)
        _log_axis(axes, "x")
        axes.set_xlabel(f"speedup over the baseline ({summary.clock})")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)

    return draw_svg(draw, (7.0, 1.3 + 0.32 * len(tasks)), "by-task")


def seen_against_unseen(summary: RunSummary) -> str:
    """A dot a solved task: its speedup where it was shown against where it was not.

    Args:
        summary: A run with at least one solved task.

    Returns:
        An `svg` element.
    """
    solved = [task for task in summary.tasks if task.speedup and task.unseen_speedup]

    def draw(axes: Axes) -> None:
        axes.plot([0.1, 10], [0.1, 10], color=FAINT, linestyle="--", linewidth=1, zorder=0)
        _dots(axes, solved, lambda row, task: (task.speedup, task.unseen_speedup), "", SEEN, "o")
        for task, lift in _spread_labels([task for task in solved if _transfers_oddly(task)]):
            at = (task.speedup or 1, task.unseen_speedup or 1)
            axes.annotate(
                task.task.split("/")[1],
                at,
                xytext=(5, 5 + lift),
                textcoords="offset points",
                fontsize=9,
            )
        _log_axis(axes, "x")
        _log_axis(axes, "y")
        axes.set_xlabel(f"speedup on train workloads ({summary.clock})")
        axes.set_ylabel(f"on unseen workloads ({summary.clock})")

    return draw_svg(draw, (5.5, 4.8), "transfer")


def _transfers_oddly(task: TaskSummary) -> bool:
    """Whether its two speedups differ enough for the plot to name it."""
    ratio = (task.unseen_speedup or 1) / (task.speedup or 1)
    return not 1 / _ODD_RATIO < ratio < _ODD_RATIO


def _spread_labels(tasks: list[TaskSummary]) -> list[tuple[TaskSummary, float]]:
    """Each task with the points by which its label moves up, so that no two labels overlap."""
    placed, lowest_free = [], -math.inf
    for task in sorted(tasks, key=lambda task: task.unseen_speedup or 1):
        wanted = math.log10(task.unseen_speedup or 1) * _POINTS_A_DECADE
        height = max(wanted, lowest_free)
        lowest_free = height + _LABEL_POINTS
        placed.append((task, height - wanted))
    return placed


def _dots(
    axes: Axes,
    tasks: list[TaskSummary],
    place: Callable[[int, TaskSummary], tuple[float | None, float | None]],
    label: str,
    color: str,
    marker: str,
) -> None:
    points = [place(row, task) for row, task in enumerate(tasks)]
    shown = [(x, y) for x, y in points if x is not None and y is not None]
    axes.plot(
        [x for x, _ in shown],
        [y for _, y in shown],
        linestyle="",
        marker=marker,
        color=color,
        label=label,
    )


def _log_axis(axes: Axes, which: str) -> None:
    """A log axis over the range of rewarded speedups, with plain numbers."""
    getattr(axes, f"set_{which}scale")("log")
    getattr(axes, f"set_{which}lim")(0.09, 11)
    axis = getattr(axes, f"{which}axis")
    axis.set_ticks(_TICKS)
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}x"))
    axis.set_minor_formatter(NullFormatter())


def draw_svg(draw: Callable[[Axes], None], size: tuple[float, float], name: str) -> str:
    """Draws a figure and returns it as an element whose ids are its own."""
    with rc_context(_SETTINGS):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot()
        axes.spines[["top", "right"]].set_visible(False)
        draw(axes)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return _for_page(buffer.getvalue(), name)


def _for_page(svg: str, name: str) -> str:
    """Drops the file's prologue, prefixes ids, and puts CSS variables in place of colours."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    svg = re.sub(r"font-family: [^;]*; ", "", svg)
    for color, variable in _VARIABLES.items():
        svg = svg.replace(color, f"var({variable})")
    return svg.strip()
