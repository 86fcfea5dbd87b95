"""Runs one program of others as `kernel-gym sim -- COMMAND` does, and describes the result."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import sysconfig
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.outside import cases
from benchmarks.outside.program import Program
from benchmarks.outside.reasons import MAX_REASON_CHARACTERS, reason_of, without_kernel
from kernel_gym.inert import inert_line
from kernel_gym.programs.audit_findings import audit_findings
from kernel_gym.programs.command import CommandEnd, CommandError, run_command
from kernel_gym.programs.exit_codes import exit_code
from kernel_gym.programs.results import read_results
from kernel_gym.simulated_rocm.settings import SimSettings

MAX_OUTPUT_BYTES = 1 << 18
"""Bytes of a program's output that are searched for a reason."""
LONG_PROGRAM_FACTOR = 5
"""A test file, and a tutorial, has the time of so many programs."""


@dataclass(frozen=True)
class OutsideLimits:
    """How long programs may run, and how many cases of a test file are run.

    Attributes:
        timeout: Host seconds of a build, of a run, and of a case of pytest, each.
        cases: Most cases of a test file.
        processor: Processor seconds of each process of a build or a run; None: no limit.
    """

    timeout: float
    cases: int
    processor: int | None = None


def run_program(program: Program, settings: SimSettings, limits: OutsideLimits) -> dict[str, Any]:
    """Runs a program as `_run_program` says; adds `device`, `candidate`, `processor_seconds`."""
    began = _processor_seconds()
    settings = replace(settings, device=program.device or settings.device)
    record = _run_program(program, settings, limits)
    used = round(_processor_seconds() - began, 1)
    more = {"device": settings.device, "candidate": program.candidate, "processor_seconds": used}
    return record | more


def _run_program(program: Program, settings: SimSettings, limits: OutsideLimits) -> dict[str, Any]:
    """Builds and runs a program.

    Args:
        program: The program.
        settings: The device.
        limits: Of time and of cases.

    Returns:
        `suite`, `name`, `command`, `timeout`, `outcome` (passed, failed, skipped), `reason`,
        `detail`, `cases` (counts by outcome; empty for a program without cases), `case_reasons`,
        `case_skips`,
        `launches`, `seconds` (modelled), `host_seconds`, `facts` and `findings` (of an audit, and
        faults, from `findings_of`).
    """
    record: dict[str, Any] = {
        "suite": program.suite,
        "name": program.name,
        "command": " ".join(program.command),
    }
    record |= {"timeout": limits.timeout}
    with tempfile.TemporaryDirectory(prefix="kernel-gym-outside-") as scratch:
        folder = Path(scratch)
        program = _copied(program, folder) if program.is_copied else program
        if program.build:
            built, printed = _run(program.build, program, settings, limits, folder)
            if built["exit_code"]:
                reason, detail = reason_of(built, printed)
                return record | _ended(program, "failed", f"build: {reason}", detail, built)
        if program.has_cases:
            return record | _run_cases(program, settings, limits, folder)
        result, printed = _run(program.command, program, settings, limits, folder)
        tolerant = _with_warnings(result, program, settings, limits, folder)
    if result["exit_code"]:
        reason, detail = reason_of(result, printed)
        if program.needs_work and not has_computed(result):
            reason, detail = without_kernel(reason, detail, printed)
        return record | _ended(program, "failed", reason + tolerant, detail, result)
    if program.needs_work and not has_computed(result):
        last = inert_line(printed.strip().rpartition("\n")[2], MAX_REASON_CHARACTERS)
        asked = any(process["host"] == "hip" for process in result["processes"])
        outcome = "skipped" if asked else "failed"  # it has asked the device and may not need it
        return record | _ended(program, outcome, "nothing computed on the GPU", last, result)
    return record | _ended(program, "passed", "", "", result)


def _copied(program: Program, scratch: Path) -> Program:
    """Returns a program that runs in a copy of its folder, with the files that it replaces."""
    folder = scratch / "copy" / program.folder.name
    shutil.copytree(program.folder, folder)
    for name, file in program.replaced.items():
        shutil.copyfile(file, folder / name)
    return replace(program, folder=folder)


def has_computed(result: dict[str, Any]) -> bool:
    """Whether a program has computed on the GPU: a kernel of Triton's, or any work of a HIP host.

    PyTorch's operators alone are no evidence: the programs in Python are there for their kernels.
    """
    if result["launches"]:
        return True
    return result["seconds"] > 0 and any(p["host"] == "hip" for p in result["processes"])


def _with_warnings(
    first: dict[str, Any],
    program: Program,
    settings: SimSettings,
    limits: OutsideLimits,
    folder: Path,
) -> str:
    """Says how a program that reads or writes out of bounds ends with `--bounds warn`."""
    kinds = {fault["kind"] for fault in first["faults"]}
    if not kinds & {"out_of_bounds_read", "out_of_bounds_write", "lds_out_of_bounds"}:
        return ""
    settings = replace(settings, bounds="warn")
    again, printed = _run(program.command, program, settings, limits, folder)
    if not again["exit_code"]:
        return ", passes with --bounds warn"
    return f", with --bounds warn {reason_of(again, printed)[0]}"


def _run(
    words: tuple[str, ...],
    program: Program,
    settings: SimSettings,
    limits: OutsideLimits,
    folder: Path,
) -> tuple[dict[str, Any], str]:
    results = Path(tempfile.mkdtemp(dir=folder))
    log = results / "output.txt"
    settings = replace(settings, results=results, launch_limit=limits.timeout)
    if limits.processor is not None:
        words = ("prlimit", f"--cpu={limits.processor}:", *words)
    timeout = limits.timeout * (LONG_PROGRAM_FACTOR if program.is_long else 1)
    with log.open("wb") as output:
        try:
            ended = run_command(
                *(words, settings, timeout, output.fileno(), output.fileno()),
                folder=program.folder,
                added=_variables(program, limits, folder),
            )
        except CommandError as error:
            output.write(str(error).encode())
            ended = CommandEnd(error.code, False, 0.0)
    how = {"status": ended.status, "timed_out": ended.timed_out, "host_seconds": ended.seconds}
    result = read_results(results).to_json() | how
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - MAX_OUTPUT_BYTES))
        printed = file.read().decode(errors="replace")
    if is_interrupted(ended.status, printed):
        raise KeyboardInterrupt
    return result | {"exit_code": exit_code(result, audit=False)}, printed


def _processor_seconds() -> float:
    """Returns the processor seconds of all children of this process that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def is_interrupted(status: int, printed: str) -> bool:
    """Whether Ctrl-C has ended a program: it goes to the program, which has the terminal."""
    of_pytest = status == 2 and re.search(r"^!+ KeyboardInterrupt !+$", printed, re.MULTILINE)
    return status == -signal.SIGINT or bool(of_pytest)


def _variables(program: Program, limits: OutsideLimits, folder: Path) -> dict[str, str]:
    checkout = str(Path(__file__).resolve().parents[2])  # where pytest finds the plugin
    paths = [*map(str, program.paths), checkout, os.environ.get("PYTHONPATH", "")]
    return {
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "PYTHONUNBUFFERED": "1",  # so that a time-out leaves what was printed
        "MPLBACKEND": "Agg",
        "COLUMNS": "300",  # so that pytest cuts no reason
        cases.RECORDS_VARIABLE: str(folder / "cases.jsonl"),
        cases.CASES_VARIABLE: str(limits.cases),
        **program.variables,
    }


def _run_cases(
    program: Program, settings: SimSettings, limits: OutsideLimits, folder: Path
) -> dict[str, Any]:
    """Runs a test file and describes its cases."""
    words = (*program.command, f"--timeout={limits.timeout:.0f}", "--timeout-method=signal")
    result, printed = _run(words, program, settings, limits, folder)
    counts, reasons, skips, first = cases.read(
        folder / "cases.jsonl", timed_out=result["timed_out"]
    )
    outcome, reason, detail = "passed", "", first
    if counts["failed"] or counts["not_run"]:
        outcome, reason = "failed", ", ".join(f"{n} {name}" for name, n in reasons.items())
        late = counts["not_run"] and f"{counts['not_run']} not run: {reason_of(result, printed)[0]}"
        reason = ", ".join(part for part in (reason, late) if part)
    elif not counts["drawn"]:
        outcome, (reason, detail) = "failed", reason_of(result, printed)
    elif not counts["passed"]:
        outcome, reason, detail = "skipped", "its own skips", next(iter(skips), "")
    elif not has_computed(result):
        outcome, reason = "failed", "nothing computed on the GPU"
    more = {"cases": counts, "case_reasons": reasons, "case_skips": skips}
    return _ended(program, outcome, reason, detail, result) | more


def _ended(
    program: Program, outcome: str, reason: str, detail: str, result: dict[str, Any]
) -> dict[str, Any]:
    facts: dict[str, str] = next((p["facts"] for p in result["processes"] if p["facts"]), {})
    return {
        "outcome": outcome,
        "reason": reason,
        "detail": without_folders(detail, program),
        "cases": {},
        "exit_code": result["exit_code"],
        "launches": result["launches"],
        "seconds": result["seconds"],
        "host_seconds": round(result["host_seconds"], 1),
        "facts": facts,
        "findings": findings_of(result, program),
    }


def findings_of(result: dict[str, Any], program: Program) -> list[dict[str, Any]]:
    """Returns what an audit has found and what has stopped a launch, once for each pair of lines.

    Returns:
        `kind`, `kernels`, `places` (`FILE:LINE` in the program's folder, the found access first)
        and `message`, each.
    """
    return [
        {
            "kind": finding.kind,
            "kernels": list(finding.kernels),
            "places": [without_folders(str(place), program) for place in finding.places],
            "message": without_folders(finding.message, program),
        }
        for finding in audit_findings(result, program.folder)
    ]


def without_folders(text: str, program: Program) -> str:
    """Returns a text without the folders of this machine in front of names of files."""
    packages = sysconfig.get_path("purelib")
    own = Path(__file__).resolve().parents[2]
    for place in (program.folder, *program.folder.parents[:2], *program.paths, packages, own):
        text = text.replace(f"{place}{os.sep}", "")
    return text.replace(str(Path.home()), "~")
