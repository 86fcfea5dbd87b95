"""Makes the page of a run: gathers the data and fills the template.

Equal runs give equal pages, except for their date: nothing in a page depends on the folder or the
machine, or on when the page is made.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kernel_gym.analysis.summary import RunSummary, summarise
from kernel_gym.formatting import NOTHING, factor, percent
from kernel_gym.records import RATIO_CLAMP, Clock
from kernel_gym.report import hardware_plots, plots
from kernel_gym.report.episode import write_episodes
from kernel_gym.report.figures import Measures, Tables, figures, write_figures
from kernel_gym.report.task_view import task_view
from kernel_gym.report.times import run_times
from kernel_gym.storage.run_store import REPORT, RunStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from kernel_gym.analysis.breakdown import Metrics

OPEN_TASKS = 20
"""Most tasks whose sections are filled at once; beyond it, a section is filled when opened."""
READING = {
    Clock.MODELLED: (
        "Times are modelled: a simulator executed the compiled machine code and a model turned the "
        "counted events into time. Read them as ranks and ratios; no GPU was measured."
    ),
    Clock.MEASURED: "Times are measured on the device named above.",
}


@dataclass(frozen=True)
class FigureCard:
    """A headline number."""

    value: str
    label: str
    interval: str = ""


@dataclass(frozen=True)
class Plot:
    """A plot with its title and caption."""

    title: str
    svg: Markup
    caption: str
    wide: bool = False
    folded: bool = False
    """Whether the plot is hidden until a reader opens it."""


def write_report(store: RunStore, measures: Measures) -> Path:
    """Writes the report into the run folder, and its figures as CSV and JSON beside it.

    Args:
        store: The run.
        measures: Its metrics.

    Returns:
        The page.
    """
    summary = summarise(store)
    tables = figures(store, summary, measures)
    path = store.folder / REPORT
    episodes = write_episodes(store)
    path.write_text(_render(store, summary, measures, tables, episodes), encoding="utf-8")
    write_figures(store, tables)
    return path


def _render(
    store: RunStore,
    summary: RunSummary,
    measures: Measures,
    tables: Tables,
    episodes: Sequence[str],
) -> str:
    environment = Environment(
        loader=PackageLoader("kernel_gym.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(factor=factor, percent=percent, reward=_reward)
    script = _text("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template("report.html.j2").render(
        sessions=run_times(store.sessions()),
        folded=len(summary.tasks) > OPEN_TASKS,
        script=Markup(script),
        script_hash=f"sha256-{digest}",
        config=store.config,
        summary=summary,
        metrics=measures.metrics,
        tables=tables,
        cards=_cards(summary, measures.metrics),
        reading=READING.get(summary.clock, "") if summary.clock else "",
        versions=_versions(store),
        tasks=[task_view(store, task) for task in summary.tasks],
        plots=_plots(summary, tables),
        styles=Markup(_text("report.css")),
        episodes=episodes,
    )


def _cards(summary: RunSummary, metrics: Metrics) -> list[FigureCard]:
    """Returns the headline numbers, each with its interval."""
    headline, unseen = metrics["headline"], metrics["unseen"]
    clock = f" ({summary.clock})" if summary.clock else ""

    low, high = map(factor, RATIO_CLAMP)
    limits = f"in {summary.clamped} of {summary.solved} tasks ratios beyond {low} to {high} count "
    limits = f"{limits}as these limits" if summary.clamped else ""
    copies = f"{summary.copies} by the start kernel" if summary.copies else ""

    def card(
        metric: Metrics, label: str, text: Callable[[float | None], str], remark: str = ""
    ) -> FigureCard:
        known = metric["low"] is not None
        span = f"{text(metric['low'])} to {text(metric['high'])}" if known else ""
        return FigureCard(text(metric["value"]), label, "; ".join(filter(None, (span, remark))))

    return [
        FigureCard(f"{summary.solved} of {len(summary.tasks)}", "tasks solved", copies),
        card(headline["execution_accuracy"], "attempts right", percent),
        card(headline["fast_1"], "right and faster", percent),
        card(headline["geometric_speedup_of_correct"], f"speedup of right{clock}", factor, limits),
        card(unseen["retention"], "speed kept on unseen shapes", factor),
        card(unseen["conditional_correctness"], "also right on unseen shapes", percent),
        card(headline["speed_of_light"], "of the roofline", percent),
        card(headline["reward"], "mean best reward", _reward),
    ]


def _plots(summary: RunSummary, tables: Tables) -> dict[str, list[Plot]]:
    """Returns the plots that have data, by section."""
    clock = str(summary.clock) if summary.clock else ""
    sections: dict[str, list[Plot]] = {"speed": [], "transfer": [], "turns": [], "groups": []}
    if not tables["attempts"] or not summary.submissions:
        return sections
    sections["speed"].append(
        Plot(
            "How many are how fast",
            Markup(plots.fast_p_curve(tables, clock)),
            "fast_p: the share of attempts that are right and more than p times as fast. "
            "Bars are 95 % intervals over tasks.",
        )
    )
    sections["groups"].append(
        Plot(
            "By category and mode",
            Markup(hardware_plots.heat_map(tables)),
            "Geometric mean speedup of the right attempts; below it, how many are right.",
        )
    )
    if len(tables["trajectory"]) > 1:
        sections["turns"].append(
            Plot(
                "Solved by turn",
                Markup(plots.solved_by_turn(tables)),
                "Persistent: right from the first submission on. Rescued: by a later one.",
            )
        )
    if any(row["speedup"] for row in tables["attempts"]):
        _add_speeds(sections, tables, clock)
    return sections


def _add_speeds(groups: dict[str, list[Plot]], tables: Tables, clock: str) -> None:
    """Adds the plots that need a correct attempt."""
    groups["speed"] += [
        Plot(
            "Speedups",
            Markup(plots.speedup_distribution(tables, clock)),
            "Of each attempt's fastest right submission.",
        ),
        Plot(
            "By task",
            Markup(plots.speedup_by_task(tables, clock)),
            "Of each task's best submission, by the lower bound of its speedup. A dot leads to its "
            "task.",
            wide=True,
            folded=len(tables["tasks"]) > OPEN_TASKS,
        ),
    ]
    groups["transfer"].append(
        Plot(
            "Seen against unseen",
            Markup(hardware_plots.seen_against_unseen(tables, clock)),
            "A dot an attempt. On the dashed line speed carries over whole.",
        )
    )
    if roof := hardware_plots.roofline(tables, clock):
        groups["transfer"].append(
            Plot(
                "Roofline",
                Markup(roof),
                "Timed workloads of each task's best submission, above their baseline; of many, "
                "the one furthest from the roof for each task.",
            )
        )
    if len(tables["trajectory"]) > 1:
        groups["turns"].append(
            Plot(
                "Speed by turn",
                Markup(plots.speed_by_turn(tables, clock)),
                "Geometric mean of the best so far: kernels right at once, and repaired ones.",
            )
        )


def _versions(store: RunStore) -> dict[str, str]:
    """Returns the versions of libraries that the evaluations used."""
    versions: dict[str, str] = {}
    for record in store.records():
        versions.update(record.evaluation.versions)
    return dict(sorted(versions.items()))


def _reward(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3f}"


def _text(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")
