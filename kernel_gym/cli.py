"""The command line: `kernel-gym`.

Exit codes: 0 fine, 1 the submission failed (`check`), a call has no plan (`plan`), a claim does not
hold (`referee`), a model is not right with a package (`deploy`), a run is unfinished (`compare`) or
nothing works here (`doctor`), 2 bad input, 130 interrupted. Those of `sim` are in
`kernel_gym/programs/exit_codes.py`.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from kernel_gym.commands.app import app

__all__ = ["app", "main"]


def __getattr__(name: str) -> object:
    """Loads the application when it is used first: that takes a tenth of a second."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kernel_gym.commands.app import app

    return app


def main() -> None:
    """Runs the command line.

    At its end no garbage is searched for: with all libraries loaded that takes 0.7 s.

    Raises:
        ModuleNotFoundError: A module is missing that no extra of the package has.
    """
    atexit.register(gc.freeze)
    if _is_check(sys.argv[1:]):
        _start_template()
        _leave(_status_of(_run))
    _run()


def _run() -> None:
    from kernel_gym.commands.app import app
    from kernel_gym.commands.common import BAD_INPUT, note
    from kernel_gym.extras import missing_extra

    try:
        app()
    except ModuleNotFoundError as error:
        text = missing_extra(error)
        if text is None:
            raise
        note(f"error: {text}")
        sys.exit(BAD_INPUT)


def _is_check(arguments: list[str]) -> bool:
    return arguments[:1] == ["check"] and len(arguments) > 2 and "--help" not in arguments


def _start_template() -> None:
    """Starts the template of workers before this process loads the commands.

    Loading its libraries takes the template longer than everything that `check` does until it needs
    a worker. A command line that is wrong ends the template again.
    """
    from kernel_gym.sandbox.spawn import shared_template

    shared_template()


def _status_of(run: Callable[[], None]) -> int:
    """Runs a command; returns its exit status. Other exceptions pass."""
    try:
        run()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _leave(status: int) -> NoReturn:
    """Ends this process without taking all libraries apart, which takes 0.1 s."""
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:  # nobody reads what it has printed
        status = status or 1
    os._exit(status)
