"""The table of programs of others: Markdown, from their records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kernel_gym.errors import InputError

MAX_REASONS = 12
"""Most classes of reasons that a row names; the rest is counted."""
BEGIN, END = "<!-- outside -->\n", "<!-- /outside -->"
"""The marks around the table in a page."""
_HEAD = (
    "| suite | programs that pass | cases that pass | the others, by reason |",
    "|---|---|---|---|",
)
_DETAILS = (
    "| program | cases | reason | what it says |",
    "|---|---|---|---|",
)


def suite_table(result: Mapping[str, Any]) -> str:
    """Returns a line on how the programs were run, and a table with one row for each suite.

    Args:
        result: Content of `outside.json`: `device`, `seed`, `versions`, `planned` (how many
            programs each suite has; those without a record are counted as not run) and `records`,
            from `run_program`.
    """
    planned = result["planned"]
    by_suite: dict[str, list[dict[str, Any]]] = {suite: [] for suite in planned}
    for record in result["records"]:
        by_suite.setdefault(record["suite"], []).append(record)
    rows = (_row(suite, records, planned.get(suite, 0)) for suite, records in by_suite.items())
    return "\n".join([_how(result), "", *_HEAD, *rows]) + "\n"


def failure_table(result: Mapping[str, Any]) -> str:
    """Returns a table of the programs that did not pass, each with its reason.

    Args:
        result: As for `suite_table`.
    """
    failures = [record for record in result["records"] if record["outcome"] != "passed"]
    return "\n".join([*_DETAILS, *map(_line, failures)]) + "\n"


def write_into(page: Path, table: str) -> None:
    """Replaces the text between the two marks of a page.

    Raises:
        InputError: The page lacks a mark.
    """
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise InputError(f"{page}: found no {BEGIN.strip()} ... {END}, expected both marks")
    page.write_text(before + begin + table + end + after, encoding="utf-8")


def _how(result: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    limits = sorted({record["timeout"] for record in result["records"]})
    seconds = " to ".join(f"{limit:.0f}" for limit in (limits[:1] + limits[1:][-1:]))
    return (
        f"Run on `{result['device']}` with {versions}. Limits: {seconds} s for a program, a build "
        "and a case, five times as much for a tutorial and a test file. Cases are those of a fixed "
        f"draw of each test file (seed {result['seed']})."
    )


def _row(suite: str, records: Sequence[dict[str, Any]], planned: int) -> str:
    passed = sum(record["outcome"] == "passed" for record in records)
    reasons: Counter[str] = Counter()
    for record in records:
        if record["outcome"] != "passed":
            reasons.update(_reasons(record))
    if planned > len(records):
        reasons["not run"] = planned - len(records)
    named = reasons.most_common(MAX_REASONS)
    words = [f"{count} {name}" for name, count in named]
    left = sum(reasons.values()) - sum(count for _, count in named)
    words += [f"{left} others"] if left else []
    of = max(planned, len(records))
    return f"| {suite} | {passed} of {of} | {_cases(records)} | {', '.join(words)} |"


def _reasons(record: Mapping[str, Any]) -> Counter[str]:
    """Returns the reasons of a program that did not pass: those of its cases, if there are any."""
    if not record["cases"] or not record["cases"]["drawn"]:
        return Counter([record["reason"] or record["outcome"]])
    reasons = Counter({f"{name} (cases)": n for name, n in record["case_reasons"].items()})
    if record["cases"]["not_run"]:
        reasons["not run (cases)"] = record["cases"]["not_run"]
    if record["outcome"] == "skipped":
        reasons["skips all its cases"] += 1
    return reasons or Counter([record["reason"]])


def _cases(records: Sequence[dict[str, Any]]) -> str:
    """Returns the counts of cases of a suite; empty for a suite without cases."""
    counts: Counter[str] = Counter()
    for record in records:
        counts.update(record["cases"])
    if not counts["collected"]:
        return ""
    ran = counts["passed"] + counts["failed"]
    share = f" ({100 * counts['passed'] / ran:.1f} %)" if ran else ""
    words = [f"{counts['passed']} of {ran}{share}"]
    words += [f"{counts['skipped']} skip themselves"] if counts["skipped"] else []
    words += [f"{counts['not_run']} not run"] if counts["not_run"] else []
    return f"{', '.join(words)}; {counts['drawn']} drawn of {counts['collected']} collected"


def _line(record: Mapping[str, Any]) -> str:
    cases = record["cases"]
    counted = f"{cases['passed']} of {cases['passed'] + cases['failed']}" if cases else ""
    detail = record["detail"].replace("|", "\\|").replace("`", "'").replace("<", "&lt;")
    name = f"{record['suite']}: {record['name']}"
    return f"| {name} | {counted} | {record['reason'] or record['outcome']} | {detail} |"
