"""Reports of an audited run for CI: SARIF 2.1.0 and JUnit.

SARIF is the format of static analysis (OASIS, *Static Analysis Results Interchange Format Version
2.1.0*, 2020). GitHub shows its results beside the lines. JUnit's XML has no standard. Each finding
is a test case that fails, and each kernel without one is a test case that passes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote
from xml.etree import ElementTree

from kernel_gym import __version__
from kernel_gym.errors import InputError
from kernel_gym.programs.audit_findings import audit_findings
from kernel_gym.symbols import plain_name

if TYPE_CHECKING:
    from kernel_gym.programs.audit_findings import AuditFinding, SourcePlace
    from kernel_gym.programs.results import ProgramResult

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
UNKNOWN_FILE = "unknown-source"
"""The file of a finding without source lines: GitHub refuses a result without a file."""
ROOT_NAME = "%SRCROOT%"
COUNTS = {"tests": "testcase", "errors": "error", "failures": "failure", "skipped": "skipped"}
"""The attributes of a test suite, by the elements that they count."""
NO_LAUNCH = "no kernel was launched on the simulated GPU, so nothing was audited"


def report_writer(path: Path) -> Callable[[ProgramResult, Path], None]:
    """Returns a function that writes a report of a run, and removes an older one.

    Args:
        path: The file of the report. Its ending states the format.

    Raises:
        InputError: The ending is unknown, or there can be no such file.
    """
    form = FORMATS.get(path.suffix)
    if form is None:
        raise InputError(f"--report: found {path.name}, expected {' or '.join(FORMATS)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"--report: {path} cannot be written ({error.strerror})") from error

    def write(result: ProgramResult, root: Path) -> None:
        path.write_text(form(result, audit_findings(result, root), root), encoding="utf-8")

    return write


def sarif(result: ProgramResult, findings: Sequence[AuditFinding], root: Path) -> str:
    """Returns a run's findings as a SARIF log.

    Args:
        result: The result of the run.
        findings: Its findings.
        root: The folder to which file names are relative.
    """
    kinds = sorted({finding.kind for finding in findings})
    rules = [{"id": kind, "shortDescription": {"text": _title(kind)}} for kind in kinds]
    driver = {"name": "kernel-gym", "version": __version__, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "originalUriBaseIds": {ROOT_NAME: {"uri": root.as_uri().rstrip("/") + "/"}},
        "invocations": [_invocation(result)],
        "results": [_sarif_result(finding, kinds) for finding in findings],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _invocation(result: ProgramResult) -> dict[str, object]:
    problems = _problems(result)
    notes = [{"level": "error", "message": {"text": text}} for text in problems]
    if not result["launches"]:
        notes.append({"level": "warning", "message": {"text": NO_LAUNCH}})
    return {"executionSuccessful": not problems, "toolExecutionNotifications": notes}


def _sarif_result(finding: AuditFinding, kinds: list[str]) -> dict[str, object]:
    first, *others = finding.places or (None,)
    location = _location(first)
    location["logicalLocations"] = [{"name": name, "kind": "function"} for name in finding.kernels]
    result: dict[str, object] = {
        "ruleId": finding.kind,
        "ruleIndex": kinds.index(finding.kind),
        "level": "note" if finding.reason else "error" if finding.fails else "warning",
        "message": {"text": finding.message},
        "locations": [location],
        "relatedLocations": [
            {"id": number, **_location(place), "message": {"text": "the other access"}}
            for number, place in enumerate(others, start=1)
        ],
    }
    if finding.reason:
        result["suppressions"] = [{"kind": "external", "justification": finding.reason}]
    return result


def _location(place: SourcePlace | None) -> dict[str, object]:
    if place is None:
        return {"physicalLocation": {"artifactLocation": {"uri": UNKNOWN_FILE}}}
    if place.file.startswith("/"):
        artifact = {"uri": "file://" + quote(place.file)}
    else:
        artifact = {"uri": quote(place.file), "uriBaseId": ROOT_NAME}
    physical: dict[str, object] = {"artifactLocation": artifact}
    if place.line:
        physical["region"] = {"startLine": place.line}
    return {"physicalLocation": physical}


def junit(result: ProgramResult, findings: Sequence[AuditFinding], root: Path) -> str:
    """Returns a run's findings as a JUnit document; arguments as for :func:`sarif`."""
    suite = ElementTree.Element("testsuite", name=f"kernel-gym audit on {result['device']}")
    for text in _problems(result):
        _case(suite, "the command", "error", text)
    for finding in findings:
        name = f"{finding.kind} at {' and '.join(map(str, finding.places)) or 'an unknown line'}"
        classname = ", ".join(finding.kernels)
        if finding.reason:
            _case(suite, name, "skipped", f"suppressed: {finding.reason}", classname)
        else:
            _case(suite, name, "failure" if finding.fails else "", finding.message, classname)
    with_findings = {name for finding in findings for name in finding.kernels}
    for name in sorted({plain_name(name) for name in result["kernels"]} - with_findings):
        _case(suite, "no finding", "", "", name)
    if not result["launches"]:
        _case(suite, "the command", "skipped", NO_LAUNCH)
    for count, tag in COUNTS.items():
        suite.set(count, str(len(list(suite.iter(tag)))))
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True).decode() + "\n"


def _case(
    suite: ElementTree.Element, name: str, outcome: str, message: str, kernel: str = "audit"
) -> None:
    case = ElementTree.SubElement(suite, "testcase", classname=kernel, name=name)
    if outcome:
        ElementTree.SubElement(case, outcome, message=message)
    elif message:
        ElementTree.SubElement(case, "system-out").text = message


def _problems(result: ProgramResult) -> list[str]:
    """Returns why the run is not whole, so that it says nothing about other kernels."""
    texts = [failure["message"] for failure in result["failures"]]
    if result["timed_out"]:
        texts.append("the command was not done in time")
    elif result["status"]:
        texts.append(f"the command ended with status {result['status']}")
    elif result["status"] is None:
        texts.append("the program has crashed")
    return texts


def _title(kind: str) -> str:
    return kind.replace("_", " ").replace("lds", "LDS")


FORMATS: dict[str, Callable[[ProgramResult, Sequence[AuditFinding], Path], str]] = {
    ".sarif": sarif,
    ".xml": junit,
}
"""Functions that make the text of a report, by the ending of its file."""
