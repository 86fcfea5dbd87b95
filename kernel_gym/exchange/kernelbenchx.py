"""KernelBenchX's output folder: `metrics.json` and `summary.json`, out and back.

`predictions.jsonl` beside them is what `scripts/run_eval.sh` takes as its source.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernel_gym.exchange.code_quality import code_quality
from kernel_gym.exchange.imported_replies import ImportedReply, best_replies
from kernel_gym.exchange.suite_results import (
    MAX_RESULTS,
    ResultError,
    SuiteResult,
    parse_flag,
    parse_name,
    parse_speedup,
)
from kernel_gym.exchange.throughput import Throughput, throughput
from kernel_gym.storage.run_store import RunStore
from kernel_gym.tasks.inside import read_inside

SUITE = "kernelbenchx"
UNKNOWN = "N/A"
"""The suite's mark of a figure that is not there."""
_TASKS = "data/kernelbenchx/"


def write_results(store: RunStore, folder: Path) -> int:
    """Writes the best reply to each task as the suite reports it, and returns their number.

    Args:
        store: The run.
        folder: The folder to write to; its name is the `method` of the summary.

    Raises:
        StoreError: The run has no reply to a task of the suite.
    """
    replies = best_replies(store, SUITE)
    metrics = {_file(reply): _metrics(reply) for reply in replies}
    folder.mkdir(parents=True, exist_ok=True)
    rows = [{"file": _file(reply), "predict": reply.source} for reply in replies]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "predictions.jsonl").write_text(lines, encoding="utf-8")
    summary = _summary(folder.resolve().name, replies)
    for name, value in (("metrics.json", metrics), ("summary.json", summary)):
        (folder / name).write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
    return len(replies)


def read_results(path: Path) -> list[SuiteResult]:
    """Reads `metrics.json`.

    Raises:
        ResultError: The file cannot be read, or is no such file.
    """
    try:
        value = json.loads(read_inside(path.parent, path))
    except (OSError, ValueError, RecursionError) as error:
        raise ResultError(f"{path}: cannot be read ({error})") from None
    rows = list(value.values()) if isinstance(value, dict) else []
    if not rows or not all(isinstance(row, dict) and "call_ok" in row for row in rows):
        raise ResultError(f"{path}: expected a result with call_ok for each file")
    return [_parsed(row) for row in rows[:MAX_RESULTS]]


def _parsed(row: Mapping[str, object]) -> SuiteResult:
    right = parse_flag(row.get("exe_ok"))
    speedup = parse_speedup(row.get("speedup")) if right else None
    name = parse_name(row.get("file"))
    return SuiteResult(name, 1, parse_flag(row["call_ok"]), right, speedup)


def _file(reply: ImportedReply) -> str:
    """The path of a task as the suite's manifest has it."""
    return reply.file.removeprefix(_TASKS)


def _metrics(reply: ImportedReply) -> dict[str, object]:
    """The keys of a task in `metrics.json`."""
    quality = code_quality(reply.source) if reply.called else {}
    timed = throughput(reply) if reply.right else []
    known = bool(timed)
    return {
        "file": _file(reply),
        "call_ok": reply.called,
        "exe_ok": reply.right,
        "perf_ok": reply.right and known,
        "dtype": timed[0].dtype if known else "",
        "runtime_ms": round(sum(workload.milliseconds for workload in timed), 4)
        if known
        else UNKNOWN,
        "gbs": _rate(timed, "gigabytes", 1.0) if known else UNKNOWN,
        "tflops": _rate(timed, "gigaflops", 1e-3) if known else UNKNOWN,
        "speedup": round(reply.ratio_of_sums, 4) if known else UNKNOWN,
        "maintainability": quality.get("maintainability_index", UNKNOWN),
        "code_quality": quality,
        "performance": [workload.row() for workload in timed],
        "error": reply.message,
        "code": reply.source,
    }


def _rate(timed: Sequence[Throughput], amount: str, unit: float) -> float | str:
    """The amount of all workloads over their time, by the second; unknown if one of them is."""
    amounts: list[float | None] = [getattr(workload, amount) for workload in timed]
    known = [value for value in amounts if value is not None]
    if len(known) < len(amounts):
        return UNKNOWN
    return round(sum(known) * unit / sum(workload.milliseconds for workload in timed) * 1e3, 4)


def _summary(method: str, replies: Sequence[ImportedReply]) -> dict[str, object]:
    total = len(replies)
    right = [reply for reply in replies if reply.right and reply.rows]
    rows = [row for reply in right for row in reply.rows]
    times = [sum(side) for side in zip(*rows, strict=True)] if rows else [0.0, 0.0]
    speedup_of_all = round(times[0] / times[1], 3) if times[1] else 0.0
    ratios = [reply.ratio_of_sums for reply in right]
    counts = {
        "call": sum(reply.called for reply in replies),
        "exe": sum(reply.called and reply.right for reply in replies),
        "perf": len(right),
    }
    shares = {
        name: value
        for kind, count in counts.items()
        for name, value in (
            (f"{kind}_pass", count),
            (f"{kind}_rate", round(count / total * 100, 1)),
        )
    }
    return {
        "method": method,
        "total": total,
        **shares,
        "avg_speedup": speedup_of_all,
        "avg_speedup_global": speedup_of_all,
        "avg_speedup_per_task": round(sum(ratios) / len(ratios), 3) if ratios else 0.0,
    }
