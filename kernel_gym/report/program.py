"""Makes the page of a program that ran on a simulated GPU: `kernel-gym sim --out`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kernel_gym.sim.timing.profile import profile_text
from kernel_gym.symbols import plain_name

if TYPE_CHECKING:
    from kernel_gym.programs.results import ProgramResult

STYLES = Path(__file__).with_name("report.css")


def program_page(result: ProgramResult) -> str:
    """Returns one HTML document about a run.

    Args:
        result: The JSON that `kernel-gym sim --json` prints.
    """
    environment = Environment(
        loader=PackageLoader("kernel_gym.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("program.html.j2").render(
        result=result,
        title=shlex.join(result["command"]) if "command" in result else "a program",
        ended=_ended(result),
        kernels=_kernels(result),
        styles=Markup(STYLES.read_text(encoding="utf-8")),
    )


def _ended(result: ProgramResult) -> str:
    if result["timed_out"]:
        return "not done in time"
    if result["faults"]:
        return "faulted"
    status = result["status"]
    if status is None:
        return "crashed"
    return f"ended with status {status}" if status >= 0 else f"ended by signal {-status}"


def _kernels(result: ProgramResult) -> list[dict[str, object]]:
    """Returns the kernels, the one with the most time first."""
    total = sum(kernel["seconds"] for kernel in result["kernels"].values()) or 1.0
    return [
        {
            "name": plain_name(name),
            "share": kernel["seconds"] / total,
            "text": profile_text(plain_name(name), kernel["profile"]) if kernel["profile"] else "",
            "bound_by": kernel["profile"].get("bound_by", ""),
            "grid": "x".join(map(str, kernel["grid"])),
            "block": "x".join(map(str, kernel["block"])),
            "us": kernel["seconds"] * 1e6,
            "longest": max(0.0, kernel["longest"]) * 1e6,
            "launches": kernel["launches"],
        }
        for name, kernel in result["kernels"].items()
    ]
