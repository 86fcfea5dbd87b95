"""GEAK-eval's folders of passes: predictions, results, performance and pass@k, out and back.

`pass_I.json` has the predictions of one sample, as `geak-eval -f FOLDER -o NAME` takes them. What
that command writes is beside them: `pass_I/NAME_results_I.json`, `pass_I/NAME_perf_I.json` (ROCm
only), `NAME_all_passes.json` and `NAMEpassk.txt`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kernel_gym.analysis.estimators import pass_at_k
from kernel_gym.analysis.suite_metrics import bounds_of, efficiency
from kernel_gym.exchange.imported_replies import ImportedReply, replies_of_sample, suites_of
from kernel_gym.exchange.suite_results import (
    MAX_RESULTS,
    ResultError,
    SuiteResult,
    parse_flag,
    parse_name,
    parse_speedup,
)
from kernel_gym.imports.prediction_rows import rows_of
from kernel_gym.storage.json_lines import StoreError
from kernel_gym.storage.run_store import RunStore

SUITES = ("geak-g", "geak-rocm")
NAME = "kernel_gym"
"""The name of the output, which the suite takes with `-o`."""
KEYS = frozenset({"file_name", "call_status", "exec_status"})
"""The keys by which a row is known as a result."""


def write_passes(store: RunStore, folder: Path) -> int:
    """Writes each sample of a run as a pass with its results, and returns the number of passes.

    Args:
        store: A run of one of the suites.
        folder: The folder to write to.

    Raises:
        StoreError: The run has no reply to a task of the suites, or tasks of both.
    """
    suites = [suite for suite in suites_of(store) if suite in SUITES]
    if len(suites) > 1:
        raise StoreError(f"{store.folder}: found tasks of {' and '.join(suites)}, expected of one")
    samples = range(1, store.config.samples + 1)
    passes = [replies_of_sample(store, sample, *SUITES) for sample in samples]
    results = [[_result(i, reply) for reply in replies] for i, replies in enumerate(passes)]
    for i, replies in enumerate(passes):
        place = folder / f"pass_{i}"
        _write(folder / f"pass_{i}.json", [_prediction(reply) for reply in replies])
        _write(place / f"{NAME}_results_{i}.json", results[i])
        if suites == ["geak-rocm"]:
            _write(place / f"{NAME}_perf_{i}.json", dict(_performance(replies)))
    _write(folder / f"{NAME}_all_passes.json", [row for rows in results for row in rows])
    text = "".join(f"{line}\n" for line in _pass_at_k(results))
    (folder / f"{NAME}passk.txt").write_text(text, encoding="utf-8")
    return len(passes)


def read_passes(path: Path) -> list[SuiteResult]:
    """Reads a file of results, or those in a folder of passes, which must have one output name.

    Args:
        path: `NAME_results_I.json`, `NAME_all_passes.json`, or a folder that has the former.

    Raises:
        ResultError: There are no results, or a row is malformed.
        PredictionError: A file is no JSON.
    """
    folder = path if path.is_dir() else path.parent
    files = sorted(path.rglob("*_results_*.json")) if path.is_dir() else [path]
    results = [result for file in files for result in _read(file, folder)]
    if not results:
        raise ResultError(f"{path}: found no results, expected NAME_results_I.json")
    return results


def _read(path: Path, folder: Path) -> Iterator[SuiteResult]:
    for number, row in enumerate(rows_of(path, folder)[:MAX_RESULTS], 1):
        if not isinstance(row, dict) or not row.keys() >= KEYS:
            raise ResultError(f"{path}: row {number}: expected the keys {sorted(KEYS)}")
        sample = row.get("pass_num", 0)
        if type(sample) is not int or not 0 <= sample < MAX_RESULTS:
            raise ResultError(f"{path}: row {number}: found {sample!r:.40} as pass_num")
        right = parse_flag(row["exec_status"])
        speedup = parse_speedup(row.get("speedup")) if right else None
        called = parse_flag(row["call_status"])
        yield SuiteResult(parse_name(row["file_name"]), sample + 1, called, right, speedup)


def _prediction(reply: ImportedReply) -> dict[str, object]:
    return {"file": reply.file_name, "predict": reply.source, "difficulty": _difficulty(reply)}


def _result(number: int, reply: ImportedReply) -> dict[str, object]:
    return {
        "pass_num": number,
        "file_name": reply.file_name,
        "call_status": int(reply.called),
        "exec_status": int(reply.right),
        "speedup": reply.ratio_of_sums,
        "stdout": "",
        "stderr": reply.message,
        "difficulty": _difficulty(reply),
    }


def _difficulty(reply: ImportedReply) -> int:
    """The suite's difficulty; -1 where it states none, as in the suite."""
    text = str(reply.entry.details.get("difficulty"))
    return int(text) if text.isdecimal() else -1


def _performance(replies: Sequence[ImportedReply]) -> Iterator[tuple[str, dict[str, float | None]]]:
    """The speedup, which the suite calls `ms`, and the share of the peak in percent."""
    for reply in replies:
        if reply.right:
            share = efficiency(bounds_of(reply.record.evaluation))
            name = reply.file_name.removesuffix(".py") + ".json"
            figures = round(reply.ratio_of_sums, 4), round(share * 100, 4)
            yield name, dict(zip(("ms", "efficiency"), figures, strict=True))


def _pass_at_k(passes: Sequence[Sequence[Mapping[str, Any]]]) -> Iterator[str]:
    """Yields the lines of `passk.txt`: one pair without a k for one pass, else one for each k."""
    n = len(passes)
    files = dict.fromkeys(row["file_name"] for rows in passes for row in rows)
    for k in range(1, n + 1):
        label = f" for k={k}" if n > 1 else ""
        for kind, key in (("Call", "call_status"), ("Exec", "exec_status")):
            counts = [
                sum(row[key] for rows in passes for row in rows if row["file_name"] == file)
                for file in files
            ]
            shares = [pass_at_k(n, count, k) for count in counts]
            yield f"{kind} Accuracy{label}: {100 * sum(shares) / len(shares)}"


def _write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=4) + "\n", encoding="utf-8")
