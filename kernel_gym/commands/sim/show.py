"""The summary that `kernel-gym sim` prints at the end: kernels, profiles, faults and findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from kernel_gym.commands.common import console, messages, note
from kernel_gym.commands.tables import folding_table

if TYPE_CHECKING:
    from kernel_gym.programs.results import ProgramResult

MAX_NAME_CHARACTERS = 20
"""Most kernels whose profile is printed."""
MAX_LINES = 20
"""Most faults, findings and missing things that are printed of each."""


def show(result: ProgramResult) -> None:
    """Prints the kernels: a file's on standard output, a command's on standard error.

    A command's standard output is its own.

    Args:
        result: The JSON of a run.
    """
    target = messages if "command" in result else console
    if result.get("output"):
        target.print(result["output"].rstrip(), markup=False, highlight=False, soft_wrap=True)
        target.print()
    if result["kernels"]:
        target.print(_table(result))
        kernels = sum(kernel["seconds"] for kernel in result["kernels"].values())
        others = max(0.0, result["seconds"] - kernels)
        times = f"{kernels * 1e6:.1f} us in kernels, {others * 1e6:.1f} us in operators and copies"
        target.print(times, highlight=False)
    elif not result["processes"]:
        note("no process of the command used the simulated GPU")
    _show_profiles(target, result)


def _table(result: ProgramResult) -> Table:
    from kernel_gym.symbols import plain_name

    processes = len(result["processes"])
    where = f" in {processes} processes" if processes > 1 else ""
    title = f"launches: {result['launches']}, on {result['device']}{where}; times are modelled"
    numbers = ("launches", "grid", "block", "us in all", "us longest")
    table = folding_table("kernel", *numbers, "bound by", right=numbers, title=title)
    for name, kernel in result["kernels"].items():
        table.add_row(
            plain_name(name),
            str(kernel["launches"]),
            "x".join(map(str, kernel["grid"])),
            "x".join(map(str, kernel["block"])),
            f"{kernel['seconds'] * 1e6:.2f}",
            f"{kernel['longest'] * 1e6:.2f}",
            str(kernel["profile"].get("bound_by", "")),
        )
    return table


def _show_profiles(target: Console, result: ProgramResult) -> None:
    from kernel_gym.sim.timing.profile import profile_text
    from kernel_gym.symbols import plain_name

    for name, kernel in list(result["kernels"].items())[:MAX_NAME_CHARACTERS]:
        if not kernel["profile"]:
            continue
        target.print()
        text = profile_text(plain_name(name), kernel["profile"])
        target.print(text, markup=False, highlight=False, soft_wrap=True)


def note_end(result: ProgramResult, json: bool) -> None:
    """Prints on standard error what went wrong, one line each.

    Args:
        result: The JSON of a run.
        json: Whether the rest is printed as JSON, which has the details.
    """
    _note_findings(result["findings"])
    for missing in _distinct(result["missing"]):
        note(f"missing: {missing}")
    if "command" not in result:
        if result["error"]:
            note(f"error: {result['error']}")
            if result["detail"] and not json:
                note(result["detail"])
        return
    for fault in _distinct(result["faults"]):
        note(f"fault: {fault}")
    for failure in _distinct(result["failures"]):
        note(f"error: {failure}")
    if result["timed_out"]:
        note(f"error: not done within {result['host_seconds']:.0f} s (--timeout)")
    elif result["status"]:
        how = (
            f"status {result['status']}" if result["status"] > 0 else f"signal {-result['status']}"
        )
        note(f"the command ended with {how}")


def _note_findings(findings: list[ProgramResult]) -> None:
    known = [finding for finding in findings if finding.get("suppressed")]
    for finding in _distinct([finding for finding in findings if finding not in known]):
        note(f"finding: {finding}")
    if known:
        note(f"suppressed findings: {len(known)}")


def _distinct(records: list[ProgramResult]) -> list[str]:
    """Returns the messages, each once, with how often it comes."""
    counts: dict[str, int] = {}
    for record in records:
        where = f" (in {record['where']})" if record.get("where") else ""
        name = f"{record['what']} {record['name']}{where}: " if "what" in record else ""
        text = name + record["message"]
        counts[text] = counts.get(text, 0) + 1
    lines = [f"{text} ({count} times)" if count > 1 else text for text, count in counts.items()]
    if len(lines) > MAX_LINES:
        lines = [*lines[:MAX_LINES], f"and {len(lines) - MAX_LINES} more: see --json or --out"]
    return lines
