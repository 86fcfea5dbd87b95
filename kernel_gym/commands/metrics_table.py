"""Shows a run's metrics as a table: the headline metrics, and others that fit on one line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich import box
from rich.table import Table

from kernel_gym.formatting import NOTHING, factor, percent


def metrics_table(metrics: dict[str, Any]) -> Table:
    """Returns the table of metrics that are a few numbers each.

    Args:
        metrics: What `kernel_gym.analysis.breakdown.run_metrics` gave.
    """
    attempts = f"{metrics['attempts']} attempts at {metrics['tasks']} tasks"
    if left := metrics["unfinished_attempts"]:
        attempts += f", {left} more unfinished"
    table = Table(title=attempts, title_style="bold", box=box.SIMPLE)
    table.add_column("metric", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("95 %", no_wrap=True)
    for name, estimate in _estimates(metrics):
        table.add_row(name, *described(name, estimate))
    for name, count in metrics["outcomes"]["counts"].items():
        table.add_row(f"submissions: {name}", str(count), "")
    for name, own in metrics["origin"].items():
        speedup = f" at {factor(own['speedup'])}" if own["speedup"] else ""
        table.add_row(f"attempts: {name}", f"{own['attempts']}{speedup}", "")
    for name, found in metrics["groups"].items():
        if deviance := found["deviance"]:
            shown = f"df {deviance['degrees']}, p {deviance['p_value']:.2g}"
            expected = percent(deviance["expected"])
            share = f"{percent(deviance['explained'])}, by chance {expected}"
            table.add_row(f"deviance explained by {name}", share, shown)
    return table


def _estimates(metrics: dict[str, Any]) -> Iterator[tuple[str, dict[str, float | None]]]:
    for name, estimate in metrics["headline"].items():
        if name != "fast_1":  # it is in the curve
            yield name, estimate
    for row in metrics["fast_p"]:
        yield f"fast_{row['p']:g}", row["share"]
    compiled = metrics["fast_p_compiled"]
    for row in compiled["rows"] if compiled["tasks"] else ():
        yield f"fast_{row['p']:g} over torch.compile", row["share"]
    for row in metrics["at_k"] if metrics["samples"] > 1 else ():
        yield f"pass@{row['k']}", row["pass"]
        yield f"best@{row['k']} speedup", row["best_speedup"]
    for name in ("conditional_correctness", "retention"):
        yield f"unseen {name}", metrics["unseen"][name]


def described(name: str, estimate: dict[str, float | None], sign: str = "") -> tuple[str, str]:
    """Formats an estimate and its interval in the unit that its name implies.

    Args:
        name: Of the metric.
        estimate: `value`, `low` and `high`.
        sign: Format of the sign, `+` for differences.
    """

    def text(value: float | None) -> str:
        if value is None:
            return NOTHING
        if name.removeprefix("unseen ") in ("agent_kernel_arena", "reward"):
            return f"{value:{sign}.3g}"
        if "speedup" in name or name.endswith("retention"):
            return f"{value:{sign}.3g}x"
        return f"{value:{sign}.0%}"

    known = estimate["low"] is not None
    span = f"{text(estimate['low'])} to {text(estimate['high'])}" if known else NOTHING
    return text(estimate["value"]), span
