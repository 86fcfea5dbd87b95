"""AgentKernelArena's run folders: workspaces with results and reports, out and back.

A run folder is `workspace_GPU_AGENT/run_TIME/`. It has a workspace for each task and the reports
that the suite's dashboard and `compare_runs.py` read. `run_TIME_heldout/` beside it has the summary
of unseen workloads in the form of the suite's held-out evaluation.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import yaml

from kernel_gym.analysis.suite_metrics import arena_score
from kernel_gym.devices import describe
from kernel_gym.exchange.arena_heldout import heldout_summary
from kernel_gym.exchange.arena_reports import (
    ArenaRun,
    ArenaTask,
    breakdown_json,
    report_text,
    summary_csv,
)
from kernel_gym.exchange.imported_replies import ImportedReply, best_replies
from kernel_gym.exchange.suite_results import (
    MAX_RESULTS,
    ResultError,
    SuiteResult,
    parse_flag,
    parse_name,
    parse_speedup,
)
from kernel_gym.imports.bench.suite_runner import prepared_files
from kernel_gym.imports.predictions import RESULT
from kernel_gym.imports.readers.base import CheckoutError
from kernel_gym.imports.readers.yaml_files import read_keys
from kernel_gym.imports.recorded.facts import file_with
from kernel_gym.records import Clock
from kernel_gym.storage.run_store import RunStore

SUITE = "agentkernelarena"
GPUS = {"gfx942": "MI300", "gfx950": "MI355X"}
"""The suite's names of GPUs, by architecture."""
REPORTS = "reports"


def write_arena_run(store: RunStore, folder: Path) -> tuple[Path, int]:
    """Writes a run as the suite leaves one, and returns its folder and the number of its tasks.

    Args:
        store: The run. The best reply to each task of the suite counts.
        folder: Where `workspace_GPU_AGENT` is made, such as the checkout of the suite.

    Raises:
        StoreError: The run has no reply to a task of the suite.
        CheckoutError: A file of the checkout cannot be read.
    """
    replies = best_replies(store, SUITE)
    run = _run(store)
    place = folder / f"workspace_{run.gpu}_{run.agent}" / f"run_{run.timestamp}"
    tasks = [_task(store, reply) for reply in replies]
    for reply, task in zip(replies, tasks, strict=True):
        workspace = place / f"{task.name.replace('/', '_')}_{run.timestamp}"
        _write_files(workspace, _workspace_files(reply))
        _write_yaml(workspace / RESULT, _result(reply, task))
    reports = {
        "overall_summary.csv": summary_csv(tasks),
        "task_type_breakdown.json": breakdown_json(tasks, run),
        "overall_report.txt": report_text(tasks, run),
    }
    _write_files(place / REPORTS, {name: text.encode() for name, text in reports.items()})
    beside = place.with_name(f"{place.name}_heldout")
    _write_yaml(beside / "heldout_summary.yaml", heldout_summary(replies, tasks))
    return place, len(tasks)


def read_arena_run(folder: Path) -> list[SuiteResult]:
    """Reads the results of a run folder: one for each workspace.

    Raises:
        ResultError: There is no workspace with a result, or one is malformed.
    """
    results = []
    for path in sorted(folder.glob(f"*/{RESULT}"))[:MAX_RESULTS]:
        try:
            value = read_keys(folder, path.relative_to(folder).as_posix())
        except CheckoutError as error:
            raise ResultError(f"{folder}: {error}") from None
        if not parse_name(value.get("task_name")):
            raise ResultError(f"{path}: expected keys, among them task_name")
        right = parse_flag(value.get("pass_correctness"))
        called = parse_flag(value.get("pass_compilation"))
        speedup = parse_speedup(value.get("speedup_ratio")) if right else None
        results.append(SuiteResult(parse_name(value["task_name"]), 1, called, right, speedup))
    if not results:
        raise ResultError(f"{folder}: found no workspace with {RESULT}")
    return results


def _run(store: RunStore) -> ArenaRun:
    sessions = store.sessions()
    began = datetime.fromtimestamp(sessions[0].started if sessions else 0, UTC)
    agent = re.sub(r"[^A-Za-z0-9.-]+", "_", store.config.policy).strip("_.") or "agent"
    arch = describe(store.config.device).arch
    return ArenaRun(began.strftime("%Y%m%d_%H%M%S"), agent, GPUS.get(arch, arch))


def _task(store: RunStore, reply: ImportedReply) -> ArenaTask:
    speedup = reply.mean_of_ratios
    score = arena_score(reply.called, reply.right, speedup)
    summary = f"Played by {store.config.policy}, judged by kernel-gym on {store.config.device}"
    return ArenaTask(reply.name, reply.called, reply.right, speedup, score, summary)


def _result(reply: ImportedReply, task: ArenaTask) -> dict[str, object]:
    """The keys of `task_result.yaml`. Times are milliseconds."""
    rows = reply.rows
    number = len(rows) or 1
    modelled = reply.record.evaluation.clock is Clock.MODELLED
    methods = ["modelled" if modelled else "measured"] if rows else []
    return {
        "task_name": task.name,
        "pass_compilation": task.compiled,
        "compilation_error_message": None if task.compiled else reply.message,
        "pass_correctness": task.right,
        "correctness_error_message": reply.message if task.compiled and not task.right else None,
        "base_execution_time": sum(base for base, _ in rows) / number,
        "best_optimized_execution_time": sum(best for _, best in rows) / number,
        "speedup_ratio": task.speedup,
        "baseline_benchmark_methods": methods,
        "optimized_benchmark_methods": list(methods),
        "benchmark_method_consistent": bool(methods),
        "valid_baseline_cases": len(rows),
        "valid_optimized_cases": len(rows),
        "speedup_calculation_error_message": None,
        "optimization_summary": task.summary,
        "score": task.score,
    }


def _workspace_files(reply: ImportedReply) -> dict[str, bytes]:
    """The files of a task as the suite prepares them, with the candidate in the editable one.

    A candidate for a PyTorch module is a launcher and no file of the task: it is left out.
    """
    folder = f"tasks/{reply.name}"
    files = prepared_files(reply.task.id, folder)
    pristine = files[reply.file].decode("utf-8", "replace")
    text = file_with(reply.task.problem, pristine, reply.source)
    if text is not None:
        files[reply.file] = text.encode()
    return {name.removeprefix(f"{folder}/"): content for name, content in files.items()}


def _write_files(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _write_yaml(path: Path, value: dict[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(value, sort_keys=False), encoding="utf-8")
