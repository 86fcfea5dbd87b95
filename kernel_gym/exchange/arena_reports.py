"""The reports of an AgentKernelArena run, in the fields of its `src/postprocessing.py`."""

from __future__ import annotations

import csv
import io
import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

COLUMNS = ("Task Name", "Task Type", "Score", "Speedup", "Optimization_summary")
"""The columns of `overall_summary.csv`."""


@dataclass(frozen=True)
class ArenaTask:
    """One task of a run as the reports show it.

    Attributes:
        name: The task's name, such as `triton2triton/vllm/triton_rms_norm`.
        compiled: Whether it compiles.
        right: Whether it is right.
        speedup: The mean of the ratios of its cases, or 0.
        score: The suite's score.
        summary: One line on its origin.
    """

    name: str
    compiled: bool
    right: bool
    speedup: float
    score: float
    summary: str

    @property
    def kind(self) -> str:
        """The task type: the first part of the name."""
        return self.name.partition("/")[0]

    @property
    def status(self) -> str:
        """`PASS`, `PARTIAL` if it only compiles, else `FAIL`."""
        return "PASS" if self.right else "PARTIAL" if self.compiled else "FAIL"


@dataclass(frozen=True)
class ArenaRun:
    """The facts about a run that the names of its folders state."""

    timestamp: str
    agent: str
    gpu: str


def summary_csv(tasks: Sequence[ArenaTask]) -> str:
    """Returns the text of `overall_summary.csv`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for task in tasks:
        figures = (f"{task.score:.4f}", f"{task.speedup:.4f}")
        writer.writerow((task.name, task.kind, *figures, task.summary))
    return text.getvalue()


def breakdown_json(tasks: Sequence[ArenaTask], run: ArenaRun) -> str:
    """Returns the text of `task_type_breakdown.json`."""
    kinds = dict.fromkeys(task.kind for task in tasks)
    value = {
        "run_timestamp": run.timestamp,
        "agent": run.agent,
        "target_gpu": run.gpu,
        "overall": statistics_of(tasks, "total_tasks"),
        "task_types": {
            kind: statistics_of([task for task in tasks if task.kind == kind], "count")
            for kind in kinds
        },
    }
    return json.dumps(value, indent=2) + "\n"


def report_text(tasks: Sequence[ArenaTask], run: ArenaRun) -> str:
    """Returns the text of `overall_report.txt`, whose lines of tasks the dashboard reads."""
    overall = statistics_of(tasks, "total_tasks")
    lines = [
        "AgentKernelArena Task Results Report",
        f"Run: {run.timestamp}",
        f"Agent: {run.agent}",
        f"Target GPU: {run.gpu}",
        "",
        *(f"{name}: {value}" for name, value in overall.items()),
        "",
        "TASK DETAILS:",
        *(
            f"{task.status:<8} {task.name:<40} Score: {task.score:>6.1f}  "
            f"Speedup: {task.speedup:.2f}x"
            for task in tasks
        ),
    ]
    return "\n".join(lines) + "\n"


def statistics_of(tasks: Sequence[ArenaTask], count: str) -> dict[str, object]:
    """Returns the statistics of tasks under the suite's names.

    Args:
        tasks: The tasks.
        count: The name of their number, which differs between the whole run and a task type.
    """
    number = len(tasks)
    total = sum(task.score for task in tasks)
    speedups = [t.speedup for t in tasks if t.compiled and t.right and t.speedup > 0]
    counts = {
        "compilation_pass": sum(task.compiled for task in tasks),
        "correctness_pass": sum(task.right for task in tasks),
        "speedup_gt_1": sum(speedup > 1.0 for speedup in speedups),
    }
    shares = {
        name: value
        for key, passed in counts.items()
        for name, value in (
            (f"{key}_count", passed),
            (f"{key}_rate", passed / number * 100 if number else 0.0),
        )
    }
    return {
        count: number,
        "total_score": total,
        "average_score": total / number if number else 0.0,
        **shares,
        **_spread(speedups),
        "valid_speedup_count": len(speedups),
    }


def _spread(speedups: Sequence[float]) -> dict[str, float]:
    """Mean, median, standard deviation of a sample, and percentiles, as the suite computes them."""
    names = ("average", "median", "std_dev", "p25", "p75", "p90")
    if not speedups:
        values = [0.0] * len(names)
    elif len(speedups) == 1:
        only = speedups[0]
        values = [only, only, 0.0, only, only, only]
    else:
        cuts = statistics.quantiles(speedups, n=100)
        mean = sum(speedups) / len(speedups)
        middle, spread = statistics.median(speedups), statistics.stdev(speedups)
        values = [mean, middle, spread, cuts[24], cuts[74], cuts[89]]
    return {f"{name}_speedup": value for name, value in zip(names, values, strict=True)}
