"""Descriptions of failures in a worker, by kind: to compile or to run."""

from __future__ import annotations

import sys
import traceback

from kernel_gym.formatting import anonymous
from kernel_gym.triton_versions import lacking

COMPILE, RUNTIME = "compile", "runtime"
MAX_TEXT = 6000
_MARK = "^"
"""The last line of Triton's message if the cause is an error without a text of its own."""

_COMPILER_ERRORS = (
    "CompilationError",
    "CompileTimeAssertionFailure",
    "UnsupportedLanguageConstruct",
    "OutOfResources",
    "PTXASError",
    "AutotunerError",
    "UnsupportedCodeError",
    "BuildError",
    "DSLCompileError",
)


class BuildError(Exception):
    """The source does not build: a compiler's message, a missing or unusable entry point."""


def describe(error: BaseException) -> dict[str, object]:
    """Describes an error by kind, type, one line and details, without paths of the machine."""
    names = [cls.__name__ for cls in type(error).__mro__]
    failed_build = isinstance(error, SyntaxError | ImportError) or any(
        n in _COMPILER_ERRORS for n in names
    )
    text = str(error).strip() or type(error).__name__
    lines = [part.strip() for part in text.splitlines() if part.strip()] or [type(error).__name__]
    line = lines[-1] if "CompilationError" in names else lines[0]  # Triton quotes source first
    line = _cause(error) or line if line == _MARK else line
    missing = _lacking_in_triton(text)
    line = f"{line} ({missing})" if missing else line
    return {
        "kind": COMPILE if failed_build else RUNTIME,
        "type": type(error).__name__,
        "message": anonymous(line)[:500],
        "detail": anonymous(text if "\n" in text else _trace(error))[-MAX_TEXT:],
    }


def _cause(error: BaseException) -> str:
    """Describes the error that another one was raised from: its text, else the line that failed."""
    cause = error.__cause__
    if cause is None:
        return ""
    frames = traceback.extract_tb(cause.__traceback__)
    where = (frames[-1].name, frames[-1].line) if frames else ()
    text = (str(cause).strip(),) if str(cause) else where
    return ": ".join(part for part in (type(cause).__name__, *text) if part)


def _lacking_in_triton(text: str) -> str:
    triton = sys.modules.get("triton")
    return lacking(text, triton.__version__) if triton else ""


def _trace(error: BaseException) -> str:
    """The frames of the traceback that lie in the candidate's own source."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if f.filename.endswith("candidate.py")]
    return "".join(traceback.format_list(own) + traceback.format_exception_only(error))
