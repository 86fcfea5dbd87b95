"""Runs a command with a simulated GPU in each of its processes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from kernel_gym.programs.environment import environment
from kernel_gym.programs.exit_codes import NOT_FOUND, NOT_RUNNABLE, SIGNALLED
from kernel_gym.simulated_rocm.settings import SimSettings

GRACE = 5.0
"""Seconds between the request to end and the kill."""


class CommandError(Exception):
    """The command cannot be started.

    Attributes:
        code: The exit code that says so.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class CommandEnd:
    """How a command ended.

    Attributes:
        status: Its own exit status; negative: the number of the signal that ended it.
        timed_out: Whether it was ended because its time was over.
        seconds: Host seconds that it took.
    """

    status: int
    timed_out: bool
    seconds: float


def run_command(
    words: Sequence[str],
    settings: SimSettings,
    timeout: float | None = None,
    output: int | None = None,
    errors: int | None = None,
    folder: Path | None = None,
    added: Mapping[str, str] = {},
) -> CommandEnd:
    """Runs a command to its end, with this process's standard input.

    Args:
        words: The command.
        settings: The device and what it records.
        timeout: Host seconds until the command and its children are ended; None: no limit.
        output: Descriptor for what it prints; None: this process's own.
        errors: Descriptor for its standard error; None: this process's own.
        folder: The folder in which it runs; None: this process's own.
        added: Variables besides those of this process.

    Raises:
        CommandError: There is no such command, or it cannot be run.
    """
    variables = environment(settings, os.environ | added)
    program = find_program(words[0], variables["PATH"], folder or Path())
    began = time.monotonic()
    with _ending_on_request() as started:
        try:
            child = subprocess.Popen(
                [program, *words[1:]],
                env=variables,
                stdout=output,
                stderr=errors,
                cwd=folder,
                process_group=0,  # so that a time-out reaches its children
                close_fds=False,  # a shell's `3>file` and the pipes of `make -j` are the command's
            )
        except OSError as error:
            raise CommandError(NOT_RUNNABLE, f"{words[0]}: {error.strerror}") from None
        try:
            started()
            with _Foreground(child.pid):
                timed_out = not _wait(child, timeout)
        finally:
            if child.poll() is None:
                _end(child)
    return CommandEnd(child.returncode, timed_out, time.monotonic() - began)


def find_program(name: str, path: str, folder: Path = Path()) -> str:
    """Returns the file of a command.

    Args:
        name: The first word of the command.
        path: The folders to search.
        folder: Where a name with a slash begins.

    Raises:
        CommandError: There is none, or it is not executable.
    """
    file = folder / name
    program = shutil.which(os.path.abspath(file) if os.sep in name else name, path=path)
    if program is not None:
        return program
    if file.is_file():
        how = f"python {name}" if file.suffix == ".py" else f"chmod +x {name}"
        raise CommandError(NOT_RUNNABLE, f"{name} is not executable: try {how}")
    if file.is_dir():
        raise CommandError(NOT_RUNNABLE, f"{name} is a folder, expected a program")
    raise CommandError(NOT_FOUND, f"{name}: no such command on PATH, and no such file")


def _wait(child: subprocess.Popen, timeout: float | None) -> bool:
    """Waits for a command; returns whether it ended within its time."""
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        try:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            child.wait(left)
            return True
        except subprocess.TimeoutExpired:
            _end(child)
            return False
        except KeyboardInterrupt:  # of this process alone: the command is a group of its own
            os.killpg(child.pid, signal.SIGINT)


@contextmanager
def _ending_on_request() -> Iterator[Callable[[], None]]:
    """Turns the request to end into an exception, so that the command is ended first.

    Yields a function to call when the command has started. A request that comes before is kept
    until then, or it would leave a command behind that nobody ends.
    """
    has_started, kept = False, False

    def end(number: int, frame: object) -> None:
        nonlocal kept
        kept = True
        if has_started:
            raise SystemExit(SIGNALLED + number)

    def started() -> None:
        nonlocal has_started
        has_started = True
        if kept:
            raise SystemExit(SIGNALLED + signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield started
    finally:
        signal.signal(signal.SIGTERM, before)


def _end(child: subprocess.Popen) -> None:
    """Ends a command and its children."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        with suppress(subprocess.TimeoutExpired):
            child.wait(GRACE)


class _Foreground:
    """Gives the terminal to a group of processes, so that it may read and gets Ctrl-C."""

    def __init__(self, group: int) -> None:
        self._group = group
        self._terminal: int | None = None

    def __enter__(self) -> None:
        with suppress(OSError):
            if os.isatty(0) and os.tcgetpgrp(0) == os.getpgrp():
                os.tcsetpgrp(0, self._group)
                self._terminal = 0

    def __exit__(self, *_: object) -> None:
        if self._terminal is None:
            return
        ignored = signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # this group is not in front
        with suppress(OSError):
            os.tcsetpgrp(self._terminal, os.getpgrp())
        signal.signal(signal.SIGTTOU, ignored)
