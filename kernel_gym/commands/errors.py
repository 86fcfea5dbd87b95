"""Prints bad input and unusable files as one line on standard error.

Other exceptions are errors of the program and keep their traceback.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from kernel_gym.commands.output import note
from kernel_gym.errors import InputError

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130

_UNUSABLE_FILE = frozenset(
    getattr(errno, name)
    for name in (
        "EACCES EDQUOT EFBIG EIO EISDIR ENAMETOOLONG ENOENT ENOSPC ENOTDIR EPERM EROFS"
    ).split()
)
"""Error numbers of the operating system for files and folders that cannot be used."""


@contextmanager
def one_line_errors(then: str = "") -> Iterator[None]:
    """Turns bad input, and files that cannot be used, into one line and exit code 2.

    Args:
        then: What the user can do, printed at the end of the line.

    Raises:
        typer.Exit: The body raised an :class:`InputError`, or an `OSError` about a file. Other
            exceptions pass unchanged.
    """
    try:
        yield
    except InputError as error:
        message = str(error)
    except OSError as error:
        if error.errno not in _UNUSABLE_FILE:
            raise
        message = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)
    else:
        return
    note(f"error: {message}{then}")
    raise typer.Exit(BAD_INPUT)
