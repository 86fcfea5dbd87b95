"""Finds the modules of a script that take most of its time, and the sizes of their inputs."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kernel_gym.imports.authoring.installed import of_installed
from kernel_gym.imports.authoring.request import read_files, snake
from kernel_gym.imports.authoring.tracer import CodeError, ask_once
from kernel_gym.inert import inert_line

MAX_MODULES = 12
NOT_PLAIN = (
    "it takes more than tensors: write a class whose forward takes tensors, makes the rest of them "
    "and calls it"
)


@dataclass(frozen=True)
class ProfiledModule:
    """A module class of a script.

    Attributes:
        what: The class, and the shapes of its inputs.
        share: Its part of the time of all calls of modules, with the modules that it calls.
        calls: How often it ran.
        command: The command that makes a task of it, or empty if `advice` says why there is none.
        file: A file to write first, by name; empty if the class is defined beside the script.
        text: The content of this file.
        advice: What to do where there is no command, or where the file has to be completed.
    """

    what: str
    share: float
    calls: int
    command: str
    file: str = ""
    text: str = ""
    advice: str = ""

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
    share, calls = row.get("share"), row.get("calls")
    module = ProfiledModule(
        f"{name}({shapes})",
        float(share) if isinstance(share, int | float) else 0.0,
        calls if isinstance(calls, int) else 0,
        "",
    )
    if not row.get("plain"):
        return replace(module, advice=NOT_PLAIN)
    fixed = [_fixed(one, _widths(inputs)) for one in inputs]
    stated = "; ".join(_shape(i, number, fixed[number]) for number, i in enumerate(inputs))
    options = ["--shapes", stated, "--sizes", _axes(inputs, fixed), "--name", snake(name)]
    if file and name.isidentifier():
        return replace(module, command=_command(f"{script.parent / file}:{name}", *options))
    installed = of_installed(row)
    if installed is None:
        return replace(module, advice="its class has no name in a module: define it in a file")
    place = f"own_{snake(name)}.py"
    init = [] if installed.arguments == 0 else ["--init", f"{script.parent / place}:arguments"]
    target = f"{script.parent / place}:{installed.name}"
    return replace(
        module,
        command=_command(target, *init, *options),
        file=place,
        text=installed.text,
        advice="replace each ... by the argument that your code passes" if installed.open else "",
    )


def _command(*words: str) -> str:
    return " ".join(map(shlex.quote, ["kernel-gym", "new", *words]))


def _shape(one: dict[str, object], number: int, fixed: int | None = None) -> str:
    """Returns an input as text.

    Args:
        one: The input.
        number: Its place among the inputs.
        fixed: How many of its last sizes stay numbers; others get the names of axes. None if
            the input gets the sizes of the profile alone, without names and ranges.
    """
    name = inert_line(one.get("name", f"x{number}"), 40)
    sizes, below, limit = _sizes(one), one.get("below"), ""
    shown = [str(s) for s in sizes]
    if fixed is not None:
        named = len(sizes) - fixed
        shown = [f"d{s}" for s in sizes[:named]] + [str(s) for s in sizes[named:]]
        limit = f" < {below} " if isinstance(below, int) and below > 0 else ""
    return f"{name}: {inert_line(one.get('dtype', ''), 20)}{limit}[{', '.join(shown)}]"


def _sizes(one: dict[str, Any]) -> list[int]:
    return [size for size in one.get("shape") or [] if isinstance(size, int)]


def _widths(inputs: list[dict[str, object]]) -> set[int]:
    """Returns the last sizes of real inputs: widths of features, which parameters share."""
    return {_sizes(one)[-1] for one in inputs if _sizes(one) and not _is_index(one)}


def _is_index(one: dict[str, object]) -> bool:
    return isinstance(one.get("below"), int)


def _fixed(one: dict[str, object], widths: set[int]) -> int:
    """Returns how many of the last sizes of an input stay: the width, of indices if it is one."""
    sizes = _sizes(one)
    return int(bool(sizes) and (not _is_index(one) or sizes[-1] in widths))


def _axes(inputs: list[dict[str, object]], fixed: list[int]) -> str:
    """Returns a size for each distinct dimension that has a name; equal sizes are one axis."""
    pairs = zip(inputs, fixed, strict=True)
    sizes = {s for one, last in pairs for s in _sizes(one)[: len(_sizes(one)) - last]}
    return " ".join(f"d{size}={size}" for size in sorted(sizes))
