"""A pytest plugin: it runs a fixed draw of the cases of a test file and records how each ends.

`python -m benchmarks outside` loads it into the pytest of a program of others.
"""

from __future__ import annotations

import json
import math
import os
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.outside.reasons import case_reason

RECORDS_VARIABLE, CASES_VARIABLE = "KERNEL_GYM_OUTSIDE_DOCUMENT", "KERNEL_GYM_OUTSIDE_CASES"
"""Variables: the file for the records, and how many cases at most are drawn."""
SMALL_VARIABLE = "KERNEL_GYM_OUTSIDE_SMALL"
"""Variable: set to draw among the smallest cases of a file only."""
SMALL_SHARE_DIVISOR = 4
"""The smallest cases are one of so many parts of a file's cases."""
SEED = 25
"""Seed of the draw of cases."""
_UNFINISHED = "the process ended in it"
_LATE = "the time of the file was over in it"
NO_CASES = {"collected": 0, "drawn": 0, "passed": 0, "failed": 0, "skipped": 0, "not_run": 0}


def draw(count: int, most: int) -> list[int]:
    """Returns the places of the cases that are run, in their order: all, or `most` by a fixed draw.

    Args:
        count: How many cases there are.
        most: How many are run at most.
    """
    if count <= most:
        return list(range(count))
    return sorted(random.Random(SEED).sample(range(count), most))


def draw_small(sizes: Sequence[int], most: int) -> list[int]:
    """Returns the places of the cases that are run, drawn among the smallest quarter.

    Args:
        sizes: A measure of each case; at least `most` cases count as small.
        most: How many are run at most.

    Example:
        >>> draw_small([9, 8, 1, 7], most=1)
        [2]
    """
    count = max(most, len(sizes) // SMALL_SHARE_DIVISOR)
    small = sorted(sorted(range(len(sizes)), key=lambda place: sizes[place])[:count])
    return [small[place] for place in draw(len(small), most)]


def size_of(value: object) -> int:
    """Returns the product of all positive integers in a parameter of a case, 1 without any.

    Example:
        >>> size_of({"shape": (2, 128), "causal": True, "scale": 0.5})
        256
    """
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return math.prod(map(size_of, value))
    return value if isinstance(value, int) and value > 0 else 1


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Keeps the cases that are drawn."""
    places = set(_places(items, int(os.environ[CASES_VARIABLE])))
    left = [item for place, item in enumerate(items) if place not in places]
    _write({"collected": len(items), "drawn": len(places)})
    items[:] = [item for place, item in enumerate(items) if place in places]
    config.hook.pytest_deselected(items=left)


def _places(items: Sequence[Any], most: int) -> list[int]:
    """Returns the places of the drawn cases of a file."""
    if SMALL_VARIABLE not in os.environ:
        return draw(len(items), most)
    cases = [getattr(item, "callspec", None) for item in items]
    return draw_small([size_of(case.params) if case else 1 for case in cases], most)


def pytest_runtest_logstart(nodeid: str) -> None:
    """Records that a case begins."""
    _write({"case": nodeid, "outcome": "begun"})


def pytest_runtest_logreport(report: Any) -> None:
    """Records how a case has ended."""
    if report.when != "call" and report.outcome == "passed":
        return
    _write({"case": report.nodeid, "outcome": report.outcome, "text": _text(report)})


def _text(report: Any) -> str:
    """Returns the words of a failure or of a skip; empty for a case that has passed."""
    if report.outcome == "passed":
        return ""
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[-1])
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message if crash is not None else report.longrepr)


def _write(record: dict[str, Any]) -> None:
    with Path(os.environ[RECORDS_VARIABLE]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def read(
    document: Path, *, timed_out: bool
) -> tuple[dict[str, int], dict[str, int], dict[str, int], str]:
    """Sums up the records of a run.

    Args:
        document: The file with the records.
        timed_out: Whether the run was ended because its time was over.

    Returns:
        The counts of cases (`collected`, `drawn`, `passed`, `failed`, `skipped`, `not_run`), the
        failed ones by their reason, the skipped ones by theirs, and the name and the
        text of the first failure.
    """
    counts, ends = dict(NO_CASES), _Ends(_LATE if timed_out else _UNFINISHED)
    for record in _records(document):
        if "collected" in record:
            counts["collected"] += record["collected"]
            counts["drawn"] += record["drawn"]
        else:
            ends.add(record)
    for outcome in ends.outcomes.values():
        counts[outcome] += 1
    counts["not_run"] = counts["drawn"] - len(ends.outcomes)
    return counts, dict(ends.reasons), dict(ends.skips), ends.first


class _Ends:
    """How cases have ended; a case that has begun and no more has failed, as `unfinished` says."""

    def __init__(self, unfinished: str) -> None:
        self._unfinished = unfinished
        self.outcomes: dict[str, str] = {}
        self.texts: dict[str, str] = {}

    def add(self, record: dict[str, Any]) -> None:
        begun = record["outcome"] == "begun"
        self.outcomes[record["case"]] = "failed" if begun else record["outcome"]
        self.texts[record["case"]] = self._unfinished if begun else record["text"]

    def _of(self, outcome: str) -> Sequence[tuple[str, str]]:
        texts = [text for case, text in self.texts.items() if self.outcomes[case] == outcome]
        return [case_reason(text) for text in texts]

    @property
    def reasons(self) -> Counter[str]:
        return Counter(reason for reason, _ in self._of("failed"))

    @property
    def skips(self) -> Counter[str]:
        return Counter(detail for _, detail in self._of("skipped"))

    @property
    def first(self) -> str:
        cases = (case for case, outcome in self.outcomes.items() if outcome == "failed")
        case = next(cases, "")
        return f"{case.rpartition('::')[2]}: {case_reason(self.texts[case])[1]}" if case else ""


def _records(document: Path) -> list[dict[str, Any]]:
    if not document.exists():
        return []
    lines = document.read_text(encoding="utf-8", errors="replace").splitlines()
    return [json.loads(line) for line in lines if line.endswith("}")]
