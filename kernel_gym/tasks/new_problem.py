"""A folder for a new problem: a copy of a small one under another name, to be rewritten."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

from kernel_gym.errors import InputError
from kernel_gym.tasks.names import PROBLEMS, is_problem

MODEL = "silu"
"""The problem that is copied: one input, one output, element by element."""
_FILES = ("problem.py", "formula.py", "baseline.py")


class NewProblemError(InputError, ValueError):
    """No folder can be made under this name. The message gives the reason."""


def new_problem(name: str, folder: Path) -> list[Path]:
    """Writes the files of a problem that is complete and still computes SiLU.

    Args:
        name: The name of the problem, of its folder and of its function: lower case words joined
            by underscores.
        folder: The folder of problem folders, which is made if there is none.

    Returns:
        The paths of the files.

    Raises:
        NewProblemError: The name is not a name of a function, or it is used already.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise NewProblemError(
            f"name: found {name!r}, expected lower case words joined by underscores"
        )
    target = folder / name
    if is_problem(name) or target.exists():
        raise NewProblemError(f"name: {name!r} is the name of another problem; choose another one")
    target.mkdir(parents=True)
    written = []
    for file in _FILES:
        path = target / file
        path.write_text(_renamed(PROBLEMS / MODEL / file, name), encoding="utf-8")
        written.append(path)
    return written


def _renamed(path: Path, name: str) -> str:
    """Returns a file of the model in which class, function and kernel have the new name."""
    text = path.read_text(encoding="utf-8")
    kind = "".join(word.capitalize() for word in name.split("_"))
    text = re.sub(rf"\b{MODEL.capitalize()}\b", kind, text)
    text = re.sub(rf"\b{MODEL}_kernel\b", f"{name}_kernel", text)
    text = re.sub(rf"\bdef {MODEL}\(", f"def {name}(", text)
    return text.replace(f'name = "{MODEL}"', f'name = "{name}"')
