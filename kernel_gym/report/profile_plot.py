"""The profile of a kernel as a plot: what it reaches of each peak, and what its waves wait for."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from kernel_gym.records import Clock, KernelFacts
from kernel_gym.report.plots import SEEN, UNSEEN, draw_svg

_SMALLEST = 0.005


def profile_plot(kernel: KernelFacts, clock: Clock, name: str) -> str:
    """Bars by unit and by stall reason, as shares.

    Args:
        kernel: A kernel with a profile.
        clock: Where the profile's times come from.
        name: Prefix of the ids in the plot, its own on the page.

    Returns:
        An `svg` element; empty when the profile has no shares.
    """
    profile: dict[str, Any] = dict(kernel.profile)
    units = profile.get("of_peak", {}) | {
        f"{unit} unit": share for unit, share in profile.get("utilisation", {}).items()
    }
    groups = (
        ("share of peak or of busy time", SEEN, units),
        ("share of the waves' time", UNSEEN, profile.get("stalls", {})),
    )
    bars = [
        (what, share, label, color)
        for label, color, shares in groups
        for what, share in shares.items()
        if share >= _SMALLEST
    ]
    if not bars:
        return ""

    def draw(axes: Axes) -> None:
        for label, color, _ in groups:
            rows = [i for i, bar in enumerate(bars) if bar[2] == label]
            axes.barh(rows, [bars[i][1] for i in rows], color=color, label=label, height=0.7)
        for row, (_, share, _, _) in enumerate(bars):
            axes.text(share + 0.01, row, f"{share:.0%}", va="center", fontsize=9)
        axes.set_yticks(range(len(bars)), [bar[0] for bar in bars])
        axes.invert_yaxis()
        axes.set_xlim(0, 1.08)
        axes.xaxis.set_major_formatter(PercentFormatter(1.0))
        axes.set_xlabel(f"{clock}, longest launch of the first train workload")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)

    return draw_svg(draw, (7.0, 1.3 + 0.26 * len(bars)), name)
