"""Bad input and full disks as one line on standard error; faults of the program raise."""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from kernel_gym.commands.output import note

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130

_BAD_INPUT = (
    "kernel_gym.benchmarks:BenchmarkError",
    "kernel_gym.devices:UnknownDevice",
    "kernel_gym.executors:UnknownExecutor",
    "kernel_gym.exploits.loader:ExploitError",
    "kernel_gym.storage.json_lines:StoreError",
    "kernel_gym.rewards:RewardError",
    "kernel_gym.rewards:UnknownReward",
    "kernel_gym.tasks.names:UnknownName",
    "kernel_gym.tasks.registry:TasksPathError",
    "kernel_gym.tasks.small_floats:UnfitDevice",
    "kernel_gym.tasks.suite:SuiteError",
    "kernel_gym.training.config:ConfigError",
    "kernel_gym.training.corpus:CorpusError",
    "kernel_gym.policies.names:PolicyError",
)
"""The errors that only bad input causes."""
_OF_THE_MACHINE = frozenset(
    getattr(errno, name)
    for name in (
        "EACCES EDQUOT EFBIG EIO EISDIR ENAMETOOLONG ENOENT ENOSPC ENOTDIR EPERM EROFS"
    ).split()
)
"""Why a file that a user named may be of no use."""


@contextmanager
def one_line_errors(then: str = "") -> Iterator[None]:
    """Turns bad input, and files that cannot be used, into one line and exit code 2.

    Args:
        then: What to do, as the end of the line.

    Raises:
        typer.Exit: There was such an error. Others are the program's own and raise as they are.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, typer.Exit):
            raise
        if isinstance(error, OSError) and error.errno in _OF_THE_MACHINE:
            what = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)
        elif isinstance(error, _bad_input()):
            what = str(error)
        else:
            raise
        note(f"error: {what}{then}")
        raise typer.Exit(BAD_INPUT) from None


def _bad_input() -> tuple[type[Exception], ...]:
    """Those of them that can have been raised: a module that is not loaded raises nothing."""
    places = [name.split(":") for name in _BAD_INPUT]
    loaded = [(sys.modules[module], name) for module, name in places if module in sys.modules]
    return tuple(getattr(module, name) for module, name in loaded)
