"""`python -m benchmarks audit-findings`: the page of what audits have found in others' kernels.

The findings were read one by one; `findings.toml` has what the reading gave. A verdict needs a
reason, and a true finding the change that ends it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from benchmarks.figures import Text
from benchmarks.marks import filled
from kernel_gym.commands.common import one_line_errors
from kernel_gym.records import Record

DATA = Path(__file__).with_name("findings.toml")
PAGE = Path("docs/audit-findings.md")
COMMAND = "python -m benchmarks audit-findings"


class Reading(StrEnum):
    """The result of reading a finding."""

    TRUE = "true"
    """The order of the accesses is not defined, and values can be wrong."""
    NO_EFFECT = "true, without effect"
    """The finding is right, but no result depends on it."""
    FALSE = "false"
    """The finding is wrong."""


class AuditRun(Record):
    """The programs of a project that were audited."""

    project: Text
    commit: Text
    versions: Text
    """The versions of the compilers."""
    programs: Text
    launches: int = Field(ge=1)


class ReadFinding(Record):
    """A finding, its lines in the project's file, and what a maintainer can do."""

    project: Text
    kernel: Text
    file: Text
    kind: Text
    """A kind of `kernel_gym.sim.engine.faults`."""
    lines: tuple[int, ...] = Field(min_length=1, max_length=2)
    """The lines of both accesses, the earlier one first; one if there is one access."""
    happens: Text
    verdict: Reading
    reason: Text
    change: str = ""
    """The change that ends the finding."""
    after: str = ""
    """The result of the run with this change."""
    repeat: Text
    """The words after `kernel-gym sim --audit --`."""
    variables: str = ""
    """Environment variables of this command."""

    @model_validator(mode="after")
    def _has_a_change(self) -> Self:
        if self.verdict is not Reading.FALSE and not self.change:
            raise ValueError(f"{self.kernel}: a true finding needs a change")
        return self


class ReadFindings(Record):
    """All runs and findings."""

    runs: tuple[AuditRun, ...]
    findings: tuple[ReadFinding, ...]

    @model_validator(mode="after")
    def _have_runs(self) -> Self:
        unknown = {one.project for one in self.findings} - {run.project for run in self.runs}
        if unknown:
            raise ValueError(f"findings of {', '.join(sorted(unknown))} without a run")
        return self


def audit_findings_page() -> None:
    """Write the tables of docs/audit-findings.md from benchmarks/outside/findings.toml.

    Example: python -m benchmarks audit-findings
    """
    with one_line_errors():
        text = page_text(PAGE.read_text(encoding="utf-8"), read_findings())
    PAGE.write_text(text, encoding="utf-8")


def read_findings(path: Path = DATA) -> ReadFindings:
    """Reads the stored findings.

    Raises:
        ValidationError: Something is missing or is nothing that belongs there.
    """
    return ReadFindings.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))


def page_text(page: str, found: ReadFindings) -> str:
    """Returns the text of the page with its three parts.

    Raises:
        InputError: The page lacks a mark.
    """
    parts = {"runs": _runs(found), "findings": _findings(found), "details": _details(found)}
    for name, part in parts.items():
        page = filled(PAGE, page, name, COMMAND, part)
    return page


def _runs(found: ReadFindings) -> str:
    rows = [
        "| project | commit | with | what ran | launches | findings | true | without effect "
        "| false |",
        "|---|---|---|---|--:|--:|--:|--:|--:|",
    ]
    for run in found.runs:
        own = [one for one in found.findings if one.project == run.project]
        cells = (run.project, f"`{run.commit}`", run.versions, run.programs, f"{run.launches:,}")
        rows.append(f"| {' | '.join(cells)} | {_counts(own)} |")
    launches = sum(run.launches for run in found.runs)
    rows.append(f"| **all** | | | | {launches:,} | {_counts(found.findings)} |")
    return "\n".join(rows) + "\n"


def _counts(findings: Sequence[ReadFinding]) -> str:
    numbers = [len(findings), *(sum(f.verdict is kind for f in findings) for kind in Reading)]
    return " | ".join(map(str, numbers))


def _findings(found: ReadFindings) -> str:
    rows = [
        "| | project, kernel | file and lines | what happens | verdict | what to change |",
        "|--:|---|---|---|---|---|",
    ]
    for number, one in enumerate(found.findings, start=1):
        lines = " and ".join(map(str, one.lines))
        where = f"`{one.file}`, {'lines' if len(one.lines) > 1 else 'line'} {lines}"
        kernel = f"{one.project}, `{one.kernel}`"
        cells = (kernel, where, one.happens, one.verdict, one.change)
        rows.append(f"| [{number}](#finding-{number}) | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def _details(found: ReadFindings) -> str:
    return "\n".join(_detail(number, one) for number, one in enumerate(found.findings, start=1))


def _detail(number: int, one: ReadFinding) -> str:
    lines = [f"`{one.kind}` in `{one.kernel}`, {one.verdict}: {one.reason}"]
    if one.after:
        lines.append(f"The change removes {one.after}.")
    command = f"{one.variables} kernel-gym sim --audit -- {one.repeat}".strip()
    return "\n".join([f"### Finding {number}", "", *lines, "", "```sh", command, "```", ""])
