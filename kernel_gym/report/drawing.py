"""Draws plots as SVG that takes its colours and fonts from the page around it."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable, Iterable
from html import escape
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator, PercentFormatter

# Matplotlib knows no CSS variables: it draws with these colours, which are then replaced by them.
INK, FAINT, LINE = "#010101", "#020202", "#030303"
SEEN, UNSEEN, GOOD, BAD = "#040404", "#050505", "#060606", "#070707"
_VARIABLES = {
    INK: "--ink",
    FAINT: "--faint",
    LINE: "--line",
    SEEN: "--seen",
    UNSEEN: "--unseen",
    GOOD: "--good",
    BAD: "--bad",
}
WIDTH = 5.2
"""Inches, at 72 CSS pixels each: a plot as wide as a phone, so that its text keeps its size there
and grows a little on a desk."""
_PLACES = re.compile(r'\b(?:d|x|y|width|height|transform|points)="[^"]*"')
_DIGITS = re.compile(r"(\d\.\d)\d+")
"""Digits of coordinates beyond a tenth of a pixel, which are removed."""
SPEEDUP_TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10)
"""Speedups are kept within [0.1, 10] (rule 24)."""
_SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "kernel-gym",
    "font.family": "sans-serif",
    "font.size": 11,
    "axes.labelsize": 11,
    "text.color": INK,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": FAINT,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": LINE,
    "legend.frameon": False,
    "legend.fontsize": 11,
    "legend.handletextpad": 0.4,
    "legend.columnspacing": 1.2,
}


def draw_svg(draw: Callable[[Axes], None], height: float, name: str, says: str) -> str:
    """Draws a figure as an `svg` element with unique ids.

    Args:
        draw: Draws on the axes.
        height: Inches; the width is the same for all.
        name: Prefix of the ids, its own on the page.
        says: What the plot shows, for those who do not see it.

    Returns:
        An `svg` element.
    """
    with rc_context(_SETTINGS):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        axes = figure.add_subplot()
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_axisbelow(True)
        draw(axes)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return _for_page(buffer.getvalue(), name, says)


def legend_above(axes: Axes, columns: int) -> None:
    """Draws a legend in one line above the plot."""
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, borderaxespad=0.3)


def speedup_axis(axes: Axes, which: str, low: float = SPEEDUP_TICKS[0] * 0.9) -> None:
    """Makes a log axis over the range of speedups, with plain numbers."""
    getattr(axes, f"set_{which}scale")("log")
    getattr(axes, f"set_{which}lim")(low, SPEEDUP_TICKS[-1] * 1.1)
    axis = getattr(axes, f"{which}axis")
    axis.set_ticks([tick for tick in SPEEDUP_TICKS if tick >= low])
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}x"))
    axis.set_minor_locator(NullLocator())


def share_axis(axes: Axes, which: str) -> None:
    """Makes an axis from 0 to 100 %."""
    getattr(axes, f"set_{which}lim")(0, 1.04)
    getattr(axes, f"{which}axis").set_major_formatter(PercentFormatter(1.0))


def linked_dots(
    axes: Axes, points: Iterable[tuple[float, float, str]], color: str, marker: str, label: str
) -> None:
    """Draws dots that link to the section of their task.

    Args:
        axes: Where to draw.
        points: x, y and task of each dot.
        color: One of this module's.
        marker: Matplotlib's letter for the shape.
        label: For the legend; empty for none.
    """
    drawn = list(points)
    if not drawn:
        return
    dots = axes.scatter(
        [x for x, _, _ in drawn],
        [y for _, y, _ in drawn],
        s=34,
        color=color,
        marker=marker,
        linewidths=1.5 if marker == "_" else 0,
        label=label or None,
        alpha=0.85,
        zorder=3,
    )
    dots.set_urls([f"#{anchor(task)}" for _, _, task in drawn])


def anchor(task: str) -> str:
    """Returns the id of a task's section on the page."""
    return re.sub(r"[^\w-]", "-", task)


def _for_page(svg: str, name: str, says: str) -> str:
    """Removes the file's prologue, prefixes ids, and replaces colours with CSS variables."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{escape(says)}"', 1)
    svg = _short_ids(svg, name)
    svg = re.sub(r"font-family: [^;]*; ", "", svg)
    # Dots are for the mouse: the table of tasks has the same links for keyboards and readers.
    link = r'<a href="#\1" tabindex="-1"><title>\1</title>'
    svg = re.sub(r'<a xlink:href="#([\w-]+)"[^>]*>', link, svg)
    svg = re.sub(r"(<svg[^>]*>)", r'\1<g aria-hidden="true">', svg, count=1)
    svg = svg.replace("</svg>", "</g></svg>")
    svg = _PLACES.sub(lambda match: _DIGITS.sub(r"\1", match.group()), svg)
    svg = re.sub(r"\s*\n\s*", "\n", svg)
    for color, variable in _VARIABLES.items():
        svg = svg.replace(color, f"var({variable})")
    return _shared_styles(svg.strip(), name)


def _short_ids(svg: str, name: str) -> str:
    """Gives ids that are referred to a short name, unique on the page, and drops the others."""
    used = dict.fromkeys(re.findall(r'(?:<use xlink:href="#|url\(#)([\w-]+)', svg))
    short = {old: f"{name}-{number}" for number, old in enumerate(used)}
    svg = re.sub(r' id="([^"]*)"', lambda m: f' id="{short[m[1]]}"' if m[1] in short else "", svg)
    svg = re.sub(r'(<use xlink:href="#|url\(#)([\w-]+)', lambda m: m[1] + short[m[2]], svg)
    svg = re.sub(r' transform="rotate\(-0 [^"]*"', "", svg)
    return re.sub(r"<g/>\s*", "", svg)


def _shared_styles(svg: str, name: str) -> str:
    """States styles that several elements have once, as classes."""
    counts = Counter(re.findall(r' style="([^"]*)"', svg))
    classes = {style: f"{name}-c{n}" for n, style in enumerate(counts) if counts[style] > 1}
    svg = re.sub(
        r' style="([^"]*)"', lambda m: f' class="{classes[m[1]]}"' if m[1] in classes else m[0], svg
    )
    rules = "\n".join(f".{label} {{ {style} }}" for style, label in classes.items())
    return re.sub(r"(<svg[^>]*>)", rf"\1\n<style>\n{rules}\n</style>", svg, count=1)
