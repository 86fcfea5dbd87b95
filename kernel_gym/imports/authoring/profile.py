"""Finds the modules of a script that take most of its time, and the sizes of their inputs."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_gym.imports.authoring.request import read_files, snake
from kernel_gym.imports.authoring.tracer import CodeError, ask_once
from kernel_gym.inert import inert_line

MAX_MODULES = 12


@dataclass(frozen=True)
class ProfiledModule:
    """A module class of a script.

    Attributes:
        what: The class, and the shapes of its inputs.
        share: Its part of the time of all calls of modules, with the modules that it calls.
        calls: How often it ran.
        command: The command that makes a task of it, or empty if it is not defined in a file.
    """

    what: str
    share: float
    calls: int
    command: str

    def to_json(self) -> dict[str, object]:
        """Returns JSON-able data."""
        return dict(vars(self))


def profile_script(script: Path) -> list[ProfiledModule]:
    """Runs a script in a confined process and lists its modules by time.

    Raises:
        CodeError: The script fails.
        RequestError: It cannot be read.
    """
    files, (name,) = read_files([f"{script}:main"])
    header = ask_once("profile", files=files, script=name.split(":")[0])
    rows = header.get("modules")
    if not isinstance(rows, list):
        raise CodeError("the profile is malformed")
    classes = [_found(row, script) for row in rows[:MAX_MODULES] if isinstance(row, dict)]
    return sorted(classes, key=lambda one: -one.share)


def _found(row: dict[str, Any], script: Path) -> ProfiledModule:
    name, file = inert_line(row.get("name", ""), 80), inert_line(row.get("file", ""), 200)
    inputs = [i for i in row.get("inputs") or [] if isinstance(i, dict)]
    shapes = "; ".join(_shape(i, number) for number, i in enumerate(inputs))
    what = f"{name}({shapes})"
    command = ""
    if file and name.isidentifier() and row.get("plain"):
        target = f"{script.parent / file}:{name}"
        sizes = _axes(inputs)
        stated = "; ".join(_shape(i, number, named=True) for number, i in enumerate(inputs))
        words = ["kernel-gym", "new", target, "--shapes", stated, "--sizes", sizes]
        command = " ".join(map(shlex.quote, [*words, "--name", snake(name)]))
    share = row.get("share")
    calls = row.get("calls")
    return ProfiledModule(
        what,
        float(share) if isinstance(share, int | float) else 0.0,
        calls if isinstance(calls, int) else 0,
        command,
    )


def _shape(one: dict[str, Any], number: int, named: bool = False) -> str:
    name = inert_line(one.get("name", f"x{number}"), 40)
    sizes = [size for size in one.get("shape") or [] if isinstance(size, int)]
    shown = [str(s) for s in sizes]
    if named and sizes:
        shown = [f"d{s}" for s in sizes[:-1]] + [str(sizes[-1])]
    return f"{name}: {inert_line(one.get('dtype', ''), 20)}[{', '.join(shown)}]"


def _axes(inputs: list[dict[str, Any]]) -> str:
    """Returns a size for each distinct leading dimension; equal sizes are one axis."""
    sizes = {s for one in inputs for s in (one.get("shape") or [])[:-1] if isinstance(s, int)}
    return " ".join(f"d{size}={size}" for size in sorted(sizes))
