"""One task as the page shows it: its best submission, and the submissions before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from kernel_gym.analysis.summary import TaskSummary
from kernel_gym.feedback import feedback
from kernel_gym.formatting import (
    NOTHING,
    calibration,
    describe,
    duration,
    factor,
    launch_part,
    percent,
    profiled_workload,
    roofline_share,
)
from kernel_gym.records import Evaluation, KernelFacts, Outcome, WorkloadResult
from kernel_gym.report.code import highlight_diff, highlight_source
from kernel_gym.report.drawing import anchor
from kernel_gym.sim.timing.launch_profile import launch_profile
from kernel_gym.storage.run_records import EpisodeEnd, TurnRecord
from kernel_gym.storage.run_store import RunStore
from kernel_gym.symbols import plain_name
from kernel_gym.tasks import Task, get_task

_SMALLEST = 0.005


@dataclass(frozen=True)
class TurnView:
    """One submission: its text, or its changes if they are shorter."""

    record: TurnRecord
    best: bool
    feedback: str
    source: Markup
    """The text; empty where changes are shown instead, and for the best submission."""
    compared_with: str
    diff: Markup


@dataclass(frozen=True)
class Bar:
    """A bar that shows a share, in the colour of its kind."""

    what: str
    share: float
    color: str


@dataclass(frozen=True)
class BestView:
    """The best submission of a task, in full."""

    record: TurnRecord
    feedback: str
    source: Markup
    diff: Markup
    """Diff against the baseline; empty if the baseline is PyTorch or equal."""
    reference: Markup
    """The PyTorch baseline; empty if the baseline is a kernel."""
    kernels: list[dict[str, str]]
    workloads: list[dict[str, str]]
    profiles: list[tuple[str, list[Bar]]]
    """The name of each profiled kernel, and what it spends its time on."""
    calibration: list[str]
    """How far modelled times may be off."""
    profiled: str
    """The workload that kernels and profiles belong to; empty if unknown."""


@dataclass(frozen=True)
class TaskView:
    """One task."""

    task: Task
    summary: TaskSummary
    anchor: str
    best: BestView | None
    turns: list[TurnView]
    ends: list[EpisodeEnd]
    """Episodes that ended early, with the reason."""
    words: str
    """Text that the page's search matches."""
    states: str
    """The page's filters that select this task."""


def task_view(store: RunStore, summary: TaskSummary) -> TaskView:
    """Gathers the data of a task for the page.

    Args:
        store: The run.
        summary: The task's summary.

    Raises:
        UnknownName: The task is not there any more.
    """
    task = get_task(summary.task)
    turns: list[TurnView] = []
    best = None
    before, name = "", ""
    for record in store.turns(task.id):
        if record.turn == 1:
            before, name = task.start_source or "", "the start kernel"
        source = store.source(record)
        is_best = (record.sample, record.turn) == (summary.best_sample, summary.best_turn)
        diff = highlight_diff(before, source) if before else Markup()
        text = highlight_source(source, task.language)
        if is_best:
            text = Markup()  # it is shown above
        else:
            text, diff = _shorter(text, diff)
        told = feedback(task, record.evaluation)
        turns.append(TurnView(record, is_best, told, text, name, diff))
        if is_best:
            best = _best(task, record, source, told)
        before, name = source, f"turn {record.turn}"
    return TaskView(
        task,
        summary,
        anchor(task.id),
        best,
        turns,
        ends=[end for end in store.ends() if end.task == task.id and end.reason],
        words=" ".join((task.id, task.problem.category, *summary.outcomes)).lower(),
        states=" ".join(_states(store, summary)),
    )


def _shorter(source: Markup, diff: Markup) -> tuple[Markup, Markup]:
    """Returns a source, or its changes if there are any and they are shorter."""
    return (Markup(), diff) if diff and len(diff) < len(source) else (source, Markup())


def _states(store: RunStore, summary: TaskSummary) -> Iterator[str]:
    """Returns the page's filters that select a task."""
    yield "unsolved" if summary.best_turn is None else "solved"
    if (summary.speedup or 0.0) > 1.0:
        yield "faster"
    if str(Outcome.HACK) in summary.outcomes:
        yield "hack"
    if any(task == summary.task for task, _ in store.unfinished()):
        yield "unfinished"


def _best(task: Task, record: TurnRecord, source: str, told: str) -> BestView:
    evaluation = record.evaluation
    baseline = task.baseline_source
    return BestView(
        record=record,
        feedback=told,
        source=highlight_source(source, task.language),
        diff=highlight_diff(baseline, source) if baseline else Markup(),
        reference=Markup() if baseline else highlight_source(task.reference_source, "triton"),
        kernels=[_kernel(kernel) for kernel in (*evaluation.kernels, *evaluation.cross_kernels)],
        workloads=_workloads(evaluation),
        calibration=calibration(evaluation),
        profiled=describe(result) if (result := profiled_workload(evaluation)) else "",
        profiles=[(plain_name(k.name), bars) for k in evaluation.kernels if (bars := _profile(k))],
    )


def _kernel(kernel: KernelFacts) -> dict[str, str]:
    """Returns the facts of a compiled kernel as cells."""
    name = plain_name(kernel.name) + (f" for {kernel.arch}" if kernel.arch else "")
    if kernel.error:
        return {"kernel": name, "bound by": kernel.error}
    waves = kernel.waves_per_simd
    return {
        "kernel": name,
        "VGPRs": f"{kernel.vgprs}{f', {kernel.agprs} AGPRs' if kernel.agprs else ''}",
        "SGPRs": str(kernel.sgprs),
        "spilled": str(kernel.vgpr_spills + kernel.sgpr_spills),
        "LDS": f"{kernel.lds_bytes} B",
        "scratch": f"{kernel.scratch_bytes} B",
        "instructions": str(kernel.instructions),
        "waves a SIMD": NOTHING if waves is None else f"{waves:g}",
        "limited by": kernel.occupancy_limiter or NOTHING,
        "bound by": kernel.bound_by or NOTHING,
    }


def _workloads(evaluation: Evaluation) -> list[dict[str, str]]:
    """Returns all workloads as rows, including those hidden from the policy.

    Right workloads of a kind that were not timed share one row.
    """
    rows: list[dict[str, str]] = []
    shared: dict[tuple[str, str], dict[str, str]] = {}
    for result in evaluation.workloads:
        row = _workload(result)
        key = (row["split"], row["kind"])
        if result.passed and result.candidate_seconds is None:
            if key in shared:
                shared[key]["workload"] += f"; {row['workload']}"
                continue
            shared[key] = row
        rows.append(row)
    return rows


def _workload(result: WorkloadResult) -> dict[str, str]:
    """Returns one workload as a row."""
    return {
        "split": str(result.split),
        "kind": "" if str(result.kind) == str(result.split) else str(result.kind),
        "workload": describe(result),
        "verdict": "right" if result.passed else result.message or "wrong",
        "baseline": duration(result.baseline_seconds),
        "candidate": duration(result.candidate_seconds),
        "launch": launch_part(result),
        "speedup": factor(result.speedup),
        "roofline": percent(roofline_share(result)),
    }


def _profile(kernel: KernelFacts) -> list[Bar]:
    """Returns a kernel's share of each peak and its stalls; empty without a profile."""
    profile = launch_profile(kernel.profile)
    units = profile.get("of_peak", {}) | {
        f"{unit} unit": share for unit, share in profile.get("utilisation", {}).items()
    }
    groups = (("seen", units), ("unseen", profile.get("stalls", {})))
    return [
        Bar(what, share, color)
        for color, shares in groups
        for what, share in shares.items()
        if share >= _SMALLEST
    ]
