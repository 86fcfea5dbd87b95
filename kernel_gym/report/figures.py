"""The figures of a report as tables, for its plots and for CSV and JSON."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernel_gym.analysis.summary import RunSummary, geometric_mean
from kernel_gym.episodes.history import best_turn
from kernel_gym.formatting import describe, roofline_share
from kernel_gym.records import Evaluation, WorkloadResult
from kernel_gym.storage.run_store import FIGURES, RunStore
from kernel_gym.tasks.registry import get_task

if TYPE_CHECKING:
    from kernel_gym.analysis.breakdown import Metrics
    from kernel_gym.analysis.summary import TaskSummary

Row = dict[str, Any]
Tables = dict[str, list[Row]]


@dataclass(frozen=True)
class Measures:
    """The metrics of a run, as input of the report.

    Attributes:
        metrics: Sections by name, as `docs/metrics.md` lists them.
        attempts: A row an attempt: `task`, `sample`, `category`, `mode`, `level`, `submissions`,
            `origin`, `turn`, `speedup`, `unseen_speedup`, `retention`, `speed_of_light`, `reward`.
    """

    metrics: Metrics
    attempts: list[Row]


def figures(store: RunStore, summary: RunSummary, measures: Measures) -> Tables:
    """Returns every figure of the report as rows of plain data.

    Args:
        store: The run.
        summary: Its summary.
        measures: Its metrics.

    Returns:
        Tables by name; times are seconds, sizes bytes.
    """
    metrics = measures.metrics
    unseen = metrics["unseen"]
    single = {name: unseen[name] for name in ("conditional_correctness", "retention")}
    return {
        "headline": [{"name": k, **v} for k, v in {**metrics["headline"], **single}.items()],
        "fast_p": [{"p": row["p"], **row["share"]} for row in metrics["fast_p"]],
        "at_k": [_flat(row) for row in metrics["at_k"]],
        "tasks": [_task(task) for task in summary.tasks],
        "attempts": measures.attempts,
        "trajectory": metrics["trajectory"],
        "origin": [{"origin": name, **row} for name, row in metrics["origin"].items()],
        "quadrants": [{"quadrant": k, "attempts": v} for k, v in unseen["quadrants"].items()],
        "kinds": [{"kind": name, **row} for name, row in unseen["kinds"].items()],
        "groups": list(_groups(metrics["groups"])),
        "categories": _categories(measures.attempts),
        "roofline": list(_roofline(store)),
        "outcomes": [
            {"outcome": name, "submissions": count}
            for name, count in metrics["outcomes"]["counts"].items()
        ],
    }


def write_figures(store: RunStore, tables: Tables) -> None:
    """Writes each table to `figures/<name>.csv` in the run folder, and all to `figures.json`.

    Args:
        store: The run.
        tables: What :func:`figures` gave; an empty one gets an empty file.
    """
    folder = store.folder / FIGURES
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, rows in tables.items():
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            if rows:
                writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
    run = store.config.model_dump(mode="json", exclude={"tasks"})
    text = json.dumps({"run": run, "tables": tables}, indent=1, allow_nan=False) + "\n"
    (folder / "figures.json").write_text(text, encoding="utf-8")


def _flat(row: Row) -> Row:
    """Returns a row with a column for each part of an estimate: `pass`, `pass_low`, `pass_high`."""
    flat: Row = {}
    for name, value in row.items():
        if isinstance(value, dict):
            flat[name] = value["value"]
            flat |= {f"{name}_{bound}": value[bound] for bound in ("low", "high")}
        else:
            flat[name] = value
    return flat


def _task(task: TaskSummary) -> Row:
    outcomes = list(task.outcomes)
    return {
        "task": task.task,
        "submissions": len(outcomes),
        "best_sample": task.best_sample,
        "best_turn": task.best_turn,
        "reward": task.reward,
        "speedup": task.speedup,
        "unseen_speedup": task.unseen_speedup,
        "outcomes": " ".join(outcomes),
    }


def _groups(groups: dict[str, Any]) -> Iterable[Row]:
    for factor, rows in groups.items():
        for level, row in rows["levels"].items():
            yield {"factor": factor, "level": level, **_flat(row)}


def _categories(attempts: list[Row]) -> list[Row]:
    """Returns a row for each category and mode: attempts, correct ones, and their speed."""
    cells: dict[tuple[str, str], list[Row]] = {}
    for row in attempts:
        cells.setdefault((row["category"], row["mode"]), []).append(row)
    return [
        {
            "category": category,
            "mode": mode,
            "attempts": len(own),
            "right": sum(row["speedup"] is not None for row in own),
            "speedup_of_right": geometric_mean(row["speedup"] for row in own),
        }
        for (category, mode), own in sorted(cells.items())
    ]


def _roofline(store: RunStore) -> Iterable[Row]:
    """Returns a row for each timed workload of the best submissions, with bytes and FLOPs."""
    for task_id in store.config.tasks:
        best = best_turn(store.turns(task_id))
        for result in _timed(best.evaluation) if best else ():
            problem = get_task(task_id).problem
            yield {
                "task": task_id,
                "split": str(result.split),
                "workload": describe(result),
                "bytes": problem.bytes(result.dims),
                "flops": problem.flops(result.dims),
                "roofline_seconds": result.roofline_seconds,
                "baseline_seconds": result.baseline_seconds,
                "seconds": result.candidate_seconds,
                "of_roofline": roofline_share(result),
            }


def _timed(evaluation: Evaluation) -> list[WorkloadResult]:
    """Returns the workloads that have both times."""
    return [w for w in evaluation.workloads if w.speedup is not None and roofline_share(w)]
