"""From a run to a page: gathers what the template shows and fills it in.

Equal runs give equal pages: nothing in it depends on the clock, the folder or the machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kernel_gym.feedback import feedback
from kernel_gym.formatting import describe, duration, factor, percent, plain_name, roofline_share
from kernel_gym.records import Clock
from kernel_gym.report.code import highlight_diff, highlight_source, highlight_styles
from kernel_gym.report.plots import seen_against_unseen, speedup_by_task
from kernel_gym.report.profile_plot import profile_plot
from kernel_gym.store import REPORT, RunStore, TurnRecord
from kernel_gym.summary import RunSummary, TaskSummary, summarise
from kernel_gym.tasks import Task, get_task

READING = {
    Clock.MODELLED: (
        "Times are modelled: a simulator executed the compiled machine code and a model turned the "
        "counted events into time. Read them as ranks and ratios; no GPU was measured."
    ),
    Clock.MEASURED: "Times are measured on the device named above.",
}


@dataclass(frozen=True)
class TurnView:
    """One submission as the page shows it."""

    record: TurnRecord
    best: bool
    feedback: str
    source: Markup
    compared_with: str
    diff: Markup
    """Empty when there is nothing to compare with, or no difference."""
    workloads: list[dict[str, str]]
    profiles: list[tuple[str, Markup]]
    """Of the best submission's kernels: name and plot."""


@dataclass(frozen=True)
class TaskView:
    """One task as the page shows it."""

    task: Task
    summary: TaskSummary
    anchor: str
    turns: list[TurnView]


def write_report(store: RunStore) -> Path:
    """Writes the report into the run folder.

    Args:
        store: The run.

    Returns:
        The file.
    """
    path = store.folder / REPORT
    path.write_text(render_report(store), encoding="utf-8")
    return path


def render_report(store: RunStore) -> str:
    """The report as one HTML document.

    Args:
        store: The run.

    Returns:
        The text of the file.
    """
    summary = summarise(store)
    environment = Environment(
        loader=PackageLoader("kernel_gym.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(factor=factor, reward=_reward)
    return environment.get_template("report.html.j2").render(
        config=store.config,
        summary=summary,
        reading=READING.get(summary.clock, "") if summary.clock else "",
        versions=_versions(store),
        tasks=[_task_view(store, task) for task in summary.tasks],
        plots=_plots(summary),
        styles=Markup(_text("report.css") + highlight_styles()),
    )


def _task_view(store: RunStore, summary: TaskSummary) -> TaskView:
    task = get_task(summary.task)
    turns = []
    for record in store.turns(task.id):
        if record.turn == 1:
            before, name = task.start_source or "", "the start kernel"
        source = store.source(record)
        best = (record.sample, record.turn) == (summary.best_sample, summary.best_turn)
        turns.append(
            TurnView(
                record=record,
                best=best,
                feedback=feedback(task, record.evaluation),
                source=highlight_source(source, task.language),
                compared_with=name,
                diff=highlight_diff(before, source) if before else Markup(),
                workloads=_workloads(record),
                profiles=_profiles(record) if best else [],
            )
        )
        before, name = source, f"turn {record.turn}"
    return TaskView(task, summary, task.id.replace("/", "-"), turns)


def _workloads(record: TurnRecord) -> list[dict[str, str]]:
    """Every workload of an evaluation; people may read what the policy was never shown."""
    return [
        {
            "split": str(result.split),
            "kind": "" if str(result.kind) == str(result.split) else str(result.kind),
            "workload": describe(result),
            "verdict": "right" if result.passed else result.message or "wrong",
            "baseline": duration(result.baseline_seconds),
            "candidate": duration(result.candidate_seconds),
            "speedup": factor(result.speedup),
            "roofline": percent(roofline_share(result)),
        }
        for result in record.evaluation.workloads
    ]


def _profiles(record: TurnRecord) -> list[tuple[str, Markup]]:
    """A plot a kernel that the device has profiled."""
    evaluation = record.evaluation
    prefix = f"profile-{evaluation.task.replace('/', '-')}"
    found = []
    for number, kernel in enumerate(evaluation.kernels):
        plot = profile_plot(kernel, evaluation.clock, f"{prefix}-{number}")
        if plot:
            found.append((plain_name(kernel.name), Markup(plot)))
    return found


def _plots(summary: RunSummary) -> list[tuple[str, Markup]]:
    """The plots with their captions; none for a run in which nothing was solved."""
    if not any(task.speedup for task in summary.tasks):
        return []
    return [
        ("Speedup of each task's best submission", Markup(speedup_by_task(summary))),
        ("Seen against unseen: speed should carry over", Markup(seen_against_unseen(summary))),
    ]


def _versions(store: RunStore) -> dict[str, str]:
    """The versions that the evaluations were made with."""
    found: dict[str, str] = {}
    for record in store.records():
        found.update(record.evaluation.versions)
    return dict(sorted(found.items()))


def _reward(value: float | None) -> str:
    return "masked" if value is None else f"{value:.3f}"


def _text(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")
