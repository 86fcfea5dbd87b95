"""Plots of transfer, roofline and categories."""

from __future__ import annotations

import math

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from kernel_gym.formatting import factor
from kernel_gym.report.drawing import (
    BAD,
    FAINT,
    GOOD,
    INK,
    LINE,
    SEEN,
    UNSEEN,
    draw_svg,
    legend_above,
    linked_dots,
    speedup_axis,
)
from kernel_gym.report.figures import Row, Tables

_CORNERS = {
    "faster_on_both": (0.52, 0.97, "left", "top"),
    "faster_on_seen_only": (0.97, 0.03, "right", "bottom"),
    "faster_on_unseen_only": (0.03, 0.97, "left", "top"),
    "faster_on_neither": (0.48, 0.03, "right", "bottom"),
}
_MAX_DOTS = 200
"""Most workloads that a roofline shows one by one."""
_BOUND_BY_MEMORY = 0.999


def seen_against_unseen(tables: Tables, clock: str) -> str:
    """Plots each attempt's speedup on train workloads against that on unseen ones.

    Args:
        tables: A run's figures.
        clock: What the times are: modelled or measured.

    Returns:
        An `svg` element.
    """
    points = [
        (row["speedup"], row["unseen_speedup"], row["task"])
        for row in tables["attempts"]
        if row["speedup"] and row["unseen_speedup"]
    ]

    def draw(axes: Axes) -> None:
        axes.plot([0.1, 10], [0.1, 10], color=FAINT, linestyle="--", linewidth=1, zorder=0)
        axes.axvline(1, color=LINE, linewidth=1, zorder=0)
        axes.axhline(1, color=LINE, linewidth=1, zorder=0)
        linked_dots(axes, points, SEEN, "o", "")
        for row in tables["quadrants"]:
            x, y, across, up = _CORNERS[row["quadrant"]]
            axes.text(
                x,
                y,
                f"{row['attempts']} {row['quadrant'].replace('_', ' ')}",
                transform=axes.transAxes,
                ha=across,
                va=up,
                fontsize=9,
                color=FAINT,
            )
        speedup_axis(axes, "x")
        speedup_axis(axes, "y")
        axes.set_xlabel(f"speedup on train workloads ({clock})")
        axes.set_ylabel(f"on unseen workloads ({clock})")

    return draw_svg(draw, 4.4, "transfer", "speedup on seen against unseen workloads")


def roofline(tables: Tables, clock: str) -> str:
    """Plots the arithmetic rate of each timed workload over its intensity, under the device's roof.

    The roof follows from the recorded least times: bytes over time where the memory decides, and
    operations over time where arithmetic does (Williams, Waterman and Patterson 2009).

    Args:
        tables: A run's figures.
        clock: What the times are.

    Returns:
        An `svg` element; empty without a workload that computes anything. Of many workloads the
        one furthest from the roof is drawn for each task and split.
    """
    rows = [row for row in tables["roofline"] if row["flops"] > 0]
    if not rows:
        return ""
    if len(rows) > _MAX_DOTS:
        rows = _furthest(rows)
    bandwidth = max(row["bytes"] / row["roofline_seconds"] for row in tables["roofline"])
    rates = {row["flops"] / row["roofline_seconds"] for row in rows if not _memory(row, bandwidth)}
    intensities = [row["flops"] / row["bytes"] for row in rows]
    low, high = min(intensities) / 2, max(intensities) * 2

    def points(split: str, seconds: str) -> list[tuple[float, float, str]]:
        return [
            (row["flops"] / row["bytes"], row["flops"] / row[seconds], row["task"])
            for row in rows
            if row["split"] == split and row[seconds]
        ]

    def draw(axes: Axes) -> None:
        axes.set_xscale("log")
        axes.set_yscale("log")
        ends = [low, max(rates) / bandwidth if rates else high]
        axes.plot(ends, [bandwidth * end for end in ends], color=INK, linewidth=1.5)
        for rate in rates:
            axes.plot([rate / bandwidth, high], [rate, rate], color=INK, linewidth=1.5)
        roof = f"roof: {bandwidth / 1e12:.3g} TB/s"
        axes.text(0.03, 0.97, roof, transform=axes.transAxes, va="top", fontsize=9, color=FAINT)
        xs = [x for row in rows for x in [row["flops"] / row["bytes"]] * 2 + [math.nan]]
        ys = [y for row in rows for y in (*_span(row), math.nan)]  # a gap after each line
        axes.plot(xs, ys, color=FAINT, linewidth=0.7, alpha=0.6, zorder=1)
        linked_dots(axes, points("train", "baseline_seconds"), FAINT, "_", "baseline")
        linked_dots(axes, points("train", "seconds"), SEEN, "o", "train")
        linked_dots(axes, points("unseen", "seconds"), UNSEEN, "D", "unseen")
        axes.set_xlim(low, high)
        axes.minorticks_off()
        axes.set_xlabel("FLOP per byte that has to move")
        axes.set_ylabel(f"FLOP/s ({clock})")
        legend_above(axes, 3)

    return draw_svg(draw, 4.4, "roofline", "arithmetic rate over intensity under the roofline")


def _span(row: Row) -> tuple[float, float]:
    """Returns the FLOP rates of baseline and submission."""
    return row["flops"] / row["baseline_seconds"], row["flops"] / row["seconds"]


def _furthest(rows: list[Row]) -> list[Row]:
    """Returns, for each task and split, the workload with the smallest share of its roofline."""
    furthest: dict[tuple[str, str], Row] = {}
    for row in sorted(rows, key=lambda row: row["of_roofline"]):
        furthest.setdefault((row["task"], row["split"]), row)
    return list(furthest.values())


def _memory(row: Row, bandwidth: float) -> bool:
    """Returns whether memory bandwidth decides a workload's roofline."""
    return row["bytes"] / row["roofline_seconds"] > _BOUND_BY_MEMORY * bandwidth


def heat_map(tables: Tables) -> str:
    """Plots correct attempts by category and mode, coloured by their speed.

    Args:
        tables: A run's figures, with at least one attempt.

    Returns:
        An `svg` element.
    """
    cells = tables["categories"]
    categories = sorted({row["category"] for row in cells}, reverse=True)
    modes = sorted({row["mode"] for row in cells})

    def draw(axes: Axes) -> None:
        for row in cells:
            x, y = modes.index(row["mode"]), categories.index(row["category"])
            speedup = row["speedup_of_right"]
            color = GOOD if speedup and speedup >= 1 else BAD
            strength = min(abs(math.log10(speedup)), 1) if speedup else 0.15
            axes.add_patch(
                Rectangle((x - 0.47, y - 0.45), 0.94, 0.9, color=LINE, linewidth=0, zorder=1)
            )
            axes.add_patch(
                Rectangle(
                    (x - 0.47, y - 0.45), 0.94, 0.9, color=color, alpha=0.55 * strength, linewidth=0
                )
            )
            axes.text(x, y + 0.02, factor(speedup), ha="center", va="bottom", fontsize=10)
            count = f"{row['right']} of {row['attempts']}"
            axes.text(x, y - 0.04, count, ha="center", va="top", fontsize=8)
        axes.set_xlim(-0.5, len(modes) - 0.5)
        axes.set_ylim(-0.5, len(categories) - 0.5)
        axes.set_xticks(range(len(modes)), [mode.replace("2", "\n2") for mode in modes])
        axes.set_yticks(range(len(categories)), categories)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.xaxis.tick_top()

    return draw_svg(
        draw, 0.7 + 0.44 * len(categories), "categories", "speedup by category and mode"
    )
