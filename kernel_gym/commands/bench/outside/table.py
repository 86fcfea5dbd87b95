"""The table of programs of others: Markdown, from their records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

MOST_REASONS = 12
"""Most classes of reasons that a row names; the rest is counted."""


def markdown(records: Iterable[dict[str, Any]], planned: dict[str, int]) -> str:
    """Returns two tables: the suites, and each program that did not pass with its reason.

    Args:
        records: From `run_program`.
        planned: How many programs each suite has; those without a record are counted as not run.
    """
    by_suite: dict[str, list[dict[str, Any]]] = {suite: [] for suite in planned}
    for record in records:
        by_suite.setdefault(record["suite"], []).append(record)
    lines = [
        "| suite | programs that pass | cases that pass | the others, by reason |",
        "|---|---|---|---|",
        *(_row(suite, found, planned.get(suite, 0)) for suite, found in by_suite.items()),
        "",
        "| program | cases | reason | what it says |",
        "|---|---|---|---|",
        *(_line(r) for found in by_suite.values() for r in found if r["outcome"] != "passed"),
    ]
    return "\n".join(lines) + "\n"


def _row(suite: str, records: list[dict[str, Any]], planned: int) -> str:
    passed = sum(record["outcome"] == "passed" for record in records)
    reasons = Counter(_reason(record) for record in records if record["outcome"] != "passed")
    if planned > len(records):
        reasons["not run"] = planned - len(records)
    named = reasons.most_common(MOST_REASONS)
    words = [f"{count} {name}" for name, count in named]
    left = sum(reasons.values()) - sum(count for _, count in named)
    words += [f"{left} others"] if left else []
    of = max(planned, len(records))
    return f"| {suite} | {passed} of {of} | {_cases(records)} | {', '.join(words)} |"


def _reason(record: dict[str, Any]) -> str:
    return record["reason"] or record["outcome"]


def _cases(records: list[dict[str, Any]]) -> str:
    counts = [record["cases"] for record in records if record["cases"]]
    if not counts:
        return ""
    ran = sum(count["passed"] + count["failed"] for count in counts)
    passed = sum(count["passed"] for count in counts)
    collected = sum(count["collected"] for count in counts)
    return f"{passed} of {ran} that ran, {collected} in all"


def _line(record: dict[str, Any]) -> str:
    cases = record["cases"]
    counted = f"{cases['passed']} of {cases['passed'] + cases['failed']}" if cases else ""
    detail = record["detail"].replace("|", "\\|").replace("`", "'")
    name = f"{record['suite']}: {record['name']}"
    return f"| {name} | {counted} | {_reason(record)} | {detail} |"
