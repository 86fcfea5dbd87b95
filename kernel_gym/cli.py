"""The command line: `kernel-gym`.

Exit codes: 0 fine, 1 the submission failed (`check`), a call has no plan (`plan`), a claim does not
hold (`referee`), a model is not right with a package (`deploy`), a run is unfinished (`compare`) or
nothing works here (`doctor`), 2 bad input, 130 interrupted. Those of `sim` are in
`kernel_gym/programs/exit_codes.py`.
"""

from __future__ import annotations

import atexit
import gc
import sys
from typing import TYPE_CHECKING

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
    _start_what_is_waited_for(sys.argv[1:])
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


def _start_what_is_waited_for(arguments: list[str]) -> None:
    """Starts the template of workers before this process loads the commands.

    Loading its libraries takes the template longer than everything that `check` does until it needs
    a worker. A command line that is wrong ends the template again.
    """
    if arguments[:1] == ["check"] and len(arguments) > 2 and "--help" not in arguments:
        from kernel_gym.sandbox.spawn import shared_template

        shared_template()
