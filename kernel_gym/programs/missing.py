"""Recognises exceptions which say that the simulated GPU lacks something, and says what to do."""

from __future__ import annotations

import re
import sys
import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from kernel_gym.triton_versions import lack

MAX_MESSAGE_CHARACTERS = 300
_PACKAGES = ("torch", "triton")
"""Packages that may lie outside of the folder for packages."""
_OWN = Path(__file__).resolve().parents[1]
_RULES: tuple[tuple[str, str, str], ...] = (
    (
        r"(?:^|Could not run '|operator ')([\w.:]+)'? (?:is not available on|with arg|is not cur)",
        "operator",
        "compute it on the CPU with .cpu(), or in a kernel",
    ),
    (
        r"(Torch not compiled with CUDA enabled)",
        "api",
        "this call of torch.cuda is not simulated: leave it out, or report it",
    ),
    (
        r"module '(triton[\w.]*' has no attribute '\w+)'",
        "api",
        "the Triton that is installed lacks it: see kernel-gym doctor for its version",
    ),
    (r"(lib(?:hip|roc|amd)\w*[\w.-]*\.so[\w.]*): cannot open", "library", "install it"),
)
"""Pattern with the name, what it is, and what to do."""

Report = Callable[[str, str, str, str], None]


def lack_of(error: BaseException) -> tuple[str, str, str, str] | None:
    """Returns what an exception says is not there: the arguments of `Recorder.missing`, or None."""
    text, place = str(error), error.__traceback__
    triton = sys.modules.get("triton")
    absent = lack(text, triton.__version__) if triton is not None else None
    if absent is not None:
        return "triton", absent[0], place_of_call(place), absent[1]
    if not isinstance(error, RuntimeError | AssertionError | AttributeError | ImportError):
        return None
    for pattern, what, advice in _RULES:
        match = re.search(pattern, text)
        if match:
            name = match.group(1).replace("' has no attribute '", ".")
            message = f"{text.splitlines()[0][:MAX_MESSAGE_CHARACTERS]}; {advice}"
            return what, name, place_of_call(place), message
    return None


def place_of_call(frames: TracebackType | None) -> str:
    """Returns `file:line` of the innermost frame of the program's own code."""
    installed = [Path(sysconfig.get_path(key)).resolve() for key in ("purelib", "stdlib")]
    installed += [Path(file).parent for name in _PACKAGES if (file := _file_of(name))]
    places = [
        f"{frame.filename}:{frame.lineno}"
        for frame in traceback.extract_tb(frames)
        if not _is_within(frame.filename, [*installed, _OWN])
    ]
    return places[-1] if places else ""


def report_at_end(report: Report, hooks: Any) -> None:
    """Reports what an uncaught exception lacks, before it is printed as usual.

    Args:
        report: Takes the four arguments.
        hooks: The module `sys`.
    """
    before = hooks.excepthook

    def hook(kind: type[BaseException], error: BaseException, frames: object) -> None:
        lack = lack_of(error)
        if lack is not None:
            report(*lack)
        before(kind, error, frames)

    hooks.excepthook = hook


def _file_of(name: str) -> str | None:
    """Returns the file of a package, if it is loaded."""
    return getattr(sys.modules.get(name), "__file__", None)


def _is_within(file: str, folders: list[Path]) -> bool:
    path = Path(file).resolve()
    return "site-packages" in path.parts or any(folder in path.parents for folder in folders)
