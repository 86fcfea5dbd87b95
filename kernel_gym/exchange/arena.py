"""AgentKernelArena's run folders: workspaces with results and reports, out and back.

A run folder is `workspace_GPU_AGENT/run_TIME/`, with a workspace for each task. The suite's own
`src/postprocessing.py` makes its reports of it.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import yaml

from kernel_gym.analysis.suite_metrics import arena_score
from kernel_gym.devices import describe
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
    kind, time = _names(store)
    place = folder / f"workspace_{kind}" / f"run_{time}"
    for reply in replies:
        workspace = place / f"{reply.name.replace('/', '_')}_{time}"
        _write_files(workspace, _workspace_files(reply))
        result = yaml.safe_dump(_result(store, reply), sort_keys=False)
        _write_files(workspace, {RESULT: result.encode()})
    return place, len(replies)


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


def _names(store: RunStore) -> tuple[str, str]:
    """Returns GPU and agent as the suite joins them in a folder's name, and the time of a run."""
    sessions = store.sessions()
    began = datetime.fromtimestamp(sessions[0].started if sessions else 0, UTC)
    agent = re.sub(r"[^A-Za-z0-9.-]+", "_", store.config.policy).strip("_.") or "agent"
    arch = describe(store.config.device).arch
    return f"{GPUS.get(arch, arch)}_{agent}", began.strftime("%Y%m%d_%H%M%S")


def _result(store: RunStore, reply: ImportedReply) -> dict[str, object]:
    """The keys of `task_result.yaml`. Times are milliseconds."""
    rows, speedup = reply.rows, reply.mean_of_ratios
    number = len(rows) or 1
    modelled = reply.record.evaluation.clock is Clock.MODELLED
    methods = ["modelled" if modelled else "measured"] if rows else []
    summary = f"Played by {store.config.policy}, judged by kernel-gym on {store.config.device}"
    return {
        "task_name": reply.name,
        "pass_compilation": reply.called,
        "compilation_error_message": None if reply.called else reply.message,
        "pass_correctness": reply.right,
        "correctness_error_message": reply.message if reply.called and not reply.right else None,
        "base_execution_time": sum(base for base, _ in rows) / number,
        "best_optimized_execution_time": sum(best for _, best in rows) / number,
        "speedup_ratio": speedup,
        "baseline_benchmark_methods": methods,
        "optimized_benchmark_methods": list(methods),
        "benchmark_method_consistent": bool(methods),
        "valid_baseline_cases": len(rows),
        "valid_optimized_cases": len(rows),
        "speedup_calculation_error_message": None,
        "optimization_summary": summary,
        "score": arena_score(reply.called, reply.right, speedup),
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
