"""A file of one's own for a module class of an installed package, such as one of transformers.

`kernel-gym new` takes classes of a user's files. A class derived from the installed one is such a
class, and a function returns the arguments of its constructor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

MAX_ARGUMENTS = 20
MAX_TEXT = 200


@dataclass(frozen=True)
class InstalledClass:
    """A class of an installed package.

    Attributes:
        name: The name of the derived class.
        text: The content of the file that defines it.
        arguments: The number of arguments that the file states.
        open: Whether the user has to complete arguments, which are `...` in the file.
    """

    name: str
    text: str
    arguments: int
    open: bool


def of_installed(row: Mapping[str, object]) -> InstalledClass | None:
    """Returns the file for a row of a profile, or None if its class cannot be imported by name.

    Args:
        row: `name` and `module` of the class, and `made`, the arguments of its constructor. The
            row comes from the user's process: only identifiers and plain values are taken.
    """
    name, module = row.get("name"), row.get("module")
    if not _is_path(module) or not _is_path(name) or module == "__main__" or "." in str(name):
        return None
    imports = {f"from {module} import {name}"}
    made = row.get("made")
    words = []
    for key, value in list(made.items())[:MAX_ARGUMENTS] if isinstance(made, dict) else ():
        if not _is_path(key):
            return None
        words.append(f"{key!r}: {_argument(value, imports)}")
    lines = [
        *sorted(imports),
        "",
        "",
        f"class Own{name}({name}):",
        f'    """{name} of {module}."""',
    ]
    if words:
        lines += ["", "", "def arguments():", f"    return {{{', '.join(words)}}}"]
    text = "\n".join(lines) + "\n"
    return InstalledClass(f"Own{name}", text, len(words), any(w.endswith(": ...") for w in words))


def _argument(value: object, imports: set[str]) -> str:
    """Returns the text of an argument; `...` stands for an argument that is not known."""
    if not isinstance(value, dict):
        return "..."
    if _is_plain(value.get("value")):
        return repr(value["value"])
    given = value.get("given")
    if not (
        _is_path(value.get("module")) and _is_path(value.get("name")) and isinstance(given, dict)
    ):
        return "..."
    imports.add(f"from {value['module']} import {value['name']}")
    stated = [f"{k}={v!r}" for k, v in given.items() if _is_path(k) and _is_plain(v)]
    return f"{value['name']}({', '.join(stated)})"


def _is_plain(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, bool | int) or (isinstance(value, str) and len(value) < MAX_TEXT)


def _is_path(value: object) -> bool:
    return isinstance(value, str) and all(part.isidentifier() for part in value.split("."))
