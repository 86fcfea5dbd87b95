"""Runs one program of others as `kernel-gym sim -- COMMAND` does, and describes the result."""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from kernel_gym.commands.bench.outside.reasons import LONGEST, of_text, reason_of
from kernel_gym.commands.bench.outside.suites import Program
from kernel_gym.inert import inert_line
from kernel_gym.programs.command import CommandEnd, CommandError, run_command
from kernel_gym.programs.exit_codes import exit_code
from kernel_gym.programs.results import read_results
from kernel_gym.worker.sim.settings import SimSettings

MOST_OUTPUT = 1 << 18
"""Bytes of a program's output that are searched for a reason."""
_CASE = re.compile(r"^\S+::.* (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b", re.MULTILINE)
_COLLECTED = re.compile(r"collected (\d+) items?")
_SUMMARY = re.compile(r"^(?:FAILED|ERROR) \S+.*? - (.*)$", re.MULTILINE)


def run_program(program: Program, settings: SimSettings, timeout: float) -> dict[str, Any]:
    """Builds and runs a program.

    Args:
        program: The program.
        settings: The device.
        timeout: Host seconds for the build and for the run, each.

    Returns:
        `suite`, `name`, `outcome` (passed, failed, skipped), `reason`, `detail`, `cases` (counts by
        outcome; empty for a program without cases), `launches`, `seconds` (modelled),
        `host_seconds` and `facts`.
    """
    record = {"suite": program.suite, "name": program.name, "command": list(program.command)}
    with tempfile.TemporaryDirectory(prefix="kernel-gym-outside-") as scratch:
        folder = Path(scratch)
        if program.build:
            built, printed = _run(program.build, program, settings, timeout, folder)
            if built["exit_code"]:
                reason, detail = reason_of(built, printed)
                reason = f"build: {reason}"
                return record | _failed(reason, detail, built)
        result, printed = _run(program.command, program, settings, timeout, folder)
        tolerant = _ends_with_warnings(result, program, settings, timeout, folder)
    if program.has_cases:
        return record | _cases(result, printed)
    if result["exit_code"]:
        reason, detail = reason_of(result, printed)
        return record | _failed(reason + tolerant, detail, result)
    if not result["seconds"]:
        last = inert_line(printed.strip().rpartition("\n")[2], LONGEST)
        asked = any(process["host"] == "hip" for process in result["processes"])
        outcome = "skipped" if asked else "failed"  # it has asked the device and may not need it
        return record | _ended(outcome, "nothing computed on the GPU", last, result)
    return record | _ended("passed", "", "", result)


def _ends_with_warnings(
    first: dict[str, Any], program: Program, settings: SimSettings, timeout: float, folder: Path
) -> str:
    """Says whether a program that reads or writes out of bounds ends well with `--bounds warn`."""
    kinds = {fault["kind"] for fault in first["faults"]}
    if program.has_cases or not kinds & {"out_of_bounds_read", "out_of_bounds_write"}:
        return ""
    settings = replace(settings, bounds="warn")
    again, _ = _run(program.command, program, settings, timeout, folder)
    return "" if again["exit_code"] else ", passes with --bounds warn"


def _run(
    words: tuple[str, ...], program: Program, settings: SimSettings, timeout: float, folder: Path
) -> tuple[dict[str, Any], str]:
    results = Path(tempfile.mkdtemp(dir=folder))
    log = results / "output.txt"
    settings = replace(settings, results=results, launch_limit=timeout)
    with log.open("wb") as output:
        try:
            ended = run_command(
                *(words, settings, timeout, output.fileno(), output.fileno()),
                folder=program.folder,
                further=_variables(program),
            )
        except CommandError as error:
            output.write(str(error).encode())
            ended = CommandEnd(error.code, False, 0.0)
    how = {"status": ended.status, "timed_out": ended.timed_out, "host_seconds": ended.seconds}
    result = read_results(results).to_json() | how
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - MOST_OUTPUT))
        printed = file.read().decode(errors="replace")
    return result | {"exit_code": exit_code(result, audit=False)}, printed


def _variables(program: Program) -> dict[str, str]:
    paths = [*map(str, program.paths), os.environ.get("PYTHONPATH", "")]
    return {
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "PYTHONUNBUFFERED": "1",  # so that a time-out leaves what was printed
        "MPLBACKEND": "Agg",
        "COLUMNS": "300",  # so that pytest cuts no reason
    }


def _cases(result: dict[str, Any], printed: str) -> dict[str, Any]:
    """Describes a run of pytest by its cases."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    names = {"PASSED": "passed", "XPASS": "passed", "SKIPPED": "skipped", "XFAIL": "skipped"}
    for outcome in _CASE.findall(printed):
        counts[names.get(outcome, "failed")] += 1
    collected = _COLLECTED.search(printed)
    counts["collected"] = int(collected.group(1)) if collected else sum(counts.values())
    reasons: dict[str, int] = {}
    for line in _SUMMARY.findall(printed):
        name = (of_text(line) or ("its own failure", ""))[0]
        reasons[name] = reasons.get(name, 0) + 1
    reason, detail = "", ""
    if result["exit_code"]:
        reason, detail = reason_of(result, printed)
    outcome = "failed" if result["exit_code"] else "passed" if counts["passed"] else "skipped"
    return _ended(outcome, reason, detail, result) | {"cases": counts, "reasons": reasons}


def _failed(reason: str, detail: str, result: dict[str, Any]) -> dict[str, Any]:
    return _ended("failed", reason, detail, result)


def _ended(outcome: str, reason: str, detail: str, result: dict[str, Any]) -> dict[str, Any]:
    facts: dict[str, str] = next((p["facts"] for p in result["processes"] if p["facts"]), {})
    return {
        "outcome": outcome,
        "reason": reason,
        "detail": detail,
        "cases": {},
        "exit_code": result["exit_code"],
        "launches": result["launches"],
        "seconds": result["seconds"],
        "host_seconds": round(result["host_seconds"], 1),
        "facts": facts,
    }
