"""Shows the metrics of a run that most readers need: right, fast, on unseen shapes, and the cost.

`metrics.json` and the report have all of them, with the curve of `fast_p`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from kernel_gym.formatting import NOTHING, factor

if TYPE_CHECKING:
    from kernel_gym.analysis.breakdown import Metrics


def metrics_table(metrics: Metrics) -> Table:
    """Returns the table of metrics that are a few numbers each.

    Args:
        metrics: What `kernel_gym.analysis.breakdown.run_metrics` gave.
    """
    attempts = f"attempts: {metrics['attempts']}, tasks: {metrics['tasks']}"
    if left := metrics["unfinished_attempts"]:
        attempts += f", unfinished attempts beside them: {left}"
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
    if spent := _spent(metrics["usage"]):
        table.add_row(*spent, "")
    return table


SHOWN = (
    "execution_accuracy",
    "fast_1",
    "geometric_speedup_of_correct",
    "speed_of_light",
    "reward",
)
"""The headline metrics that the table has."""


def _spent(usage: dict[str, float]) -> tuple[str, str] | None:
    """Tokens and US dollars; None for a policy that counts neither."""
    read, written = int(usage["prompt_tokens"]), int(usage["completion_tokens"])
    if not read and not written:
        return None
    dollars = f", {usage['cost']:,.4g} USD" if usage["cost"] else ""
    return "tokens read, written", f"{read:,}, {written:,}{dollars}"


def _estimates(metrics: Metrics) -> Iterator[tuple[str, dict[str, float | None]]]:
    """The estimates that have a value, in the order of the table."""
    rows = [(name, metrics["headline"][name]) for name in SHOWN]
    compiled = metrics["fast_p_compiled"]
    faster = [row for row in compiled["rows"] if row["p"] == 1] if compiled["tasks"] else []
    rows += [("fast_1 over torch.compile", row["share"]) for row in faster]
    for row in metrics["at_k"] if metrics["samples"] > 1 else ():
        rows += [(f"pass@{row['k']}", row["pass"])]
        rows += [(f"best@{row['k']} speedup", row["best_speedup"])]
    names = ("conditional_correctness", "retention")
    rows += [(f"unseen {name}", metrics["unseen"][name]) for name in names]
    yield from (row for row in rows if row[1]["value"] is not None)


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
