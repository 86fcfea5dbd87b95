"""Draws a small step plot as SVG, without matplotlib: a report has one or two for each episode.

Matplotlib takes a tenth of a second for each. The plot has the size, colours and fonts of those of
`drawing.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

WIDTH, HEIGHT = 374, 187
"""CSS pixels, as a plot of matplotlib of 5.2 by 2.6 inches."""
LEFT, RIGHT, TOP, BOTTOM = 48, 10, 10, 40
"""CSS pixels around the axes."""
TICKS = 5
"""About so many ticks on an axis."""


def step_plot(
    points: Sequence[tuple[float, float]], x_label: str, y_label: str, line: float, says: str
) -> str:
    """Draws values that hold until the next point.

    Args:
        points: x and y of each, at least one, x rising, y from zero up.
        x_label: What x is.
        y_label: What y is.
        line: y of a dashed line.
        says: What the plot shows, for those who do not see it.

    Returns:
        An `svg` element.
    """
    low, high = points[0][0], points[-1][0]
    if low == high:
        low, high = low - 0.5, high + 0.5
    top = 1.1 * max(line, *(y for _, y in points))

    def x_of(value: float) -> str:
        return f"{LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT):.1f}"

    def y_of(value: float) -> str:
        return f"{HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM):.1f}"

    path = f"M{x_of(points[0][0])} {y_of(points[0][1])}"
    path += "".join(f"H{x_of(x)}V{y_of(y)}" for x, y in points[1:])
    dots = "".join(f'<circle cx="{x_of(x)}" cy="{y_of(y)}" r="3"/>' for x, y in points)
    base, end = HEIGHT - BOTTOM, WIDTH - RIGHT
    columns = "".join(
        f'<text x="{x_of(x)}" y="{base + 16}" text-anchor="middle">{x:g}</text>'
        for x in _ticks(low, high)
    )
    rows = "".join(
        f'<text x="{LEFT - 6}" y="{y_of(y)}" dy="4" text-anchor="end">{y:g}</text>'
        for y in _ticks(0, top)
    )
    middle = (TOP + base) / 2
    return (
        f'<svg role="img" aria-label="{escape(says)}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'xmlns="http://www.w3.org/2000/svg" font-size="11">'
        f'<path d="M{LEFT} {y_of(line)}H{end}" stroke="var(--faint)" stroke-dasharray="4 3"/>'
        f'<path d="M{LEFT} {TOP}V{base}H{end}" fill="none" stroke="var(--faint)"/>'
        f'<path d="{path}" fill="none" stroke="var(--seen)" stroke-width="2"/>'
        f'<g fill="var(--seen)">{dots}</g><g fill="var(--ink)">{columns}{rows}</g>'
        f'<g fill="var(--faint)" text-anchor="middle">'
        f'<text x="{(LEFT + end) / 2:.0f}" y="{HEIGHT - 6}">{escape(x_label)}</text>'
        f'<text transform="translate(12 {middle:.0f}) rotate(-90)">{escape(y_label)}</text>'
        "</g></svg>"
    )


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers from a range, about `TICKS` of them."""
    rough = (high - low) / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    first = math.ceil(low / step)
    return [round(number * step, 10) for number in range(first, math.floor(high / step) + 1)]
