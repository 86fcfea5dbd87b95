"""One agent as a process: starts it, keeps its output, and ends it when a limit is reached."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from kernel_gym.agents.launch import NOT_CONFINED, Launch

MAX_TRANSCRIPT = 32 << 20
"""Bytes of an agent's output that are kept; the rest is read and dropped."""
MAX_WORKSPACE = 2 << 30
"""Bytes in a workspace at which its agent is stopped."""
MAX_ENTRIES = 100_000
"""Files in a workspace at which its agent is stopped."""
LOOK_SECONDS = 0.5
GRACE_SECONDS = 2.0
_PATTERN_BYTES = 1 << 16
_HINTS = {127: ": a program was not found; install it, and give its folder with --read"}
"""Advice on a status of a shell."""


@dataclass(frozen=True)
class Limits:
    """Limits of an episode.

    Attributes:
        seconds: Wall-clock time of the agent, without the time in which it waits for the judge.
        tokens: Tokens that its output reports; None for no limit.
    """

    seconds: float = 1800.0
    tokens: int | None = None


@dataclass(frozen=True)
class Ended:
    """How an agent ended.

    Attributes:
        status: Exit status; None if it was stopped.
        reason: Why it was stopped, or what is wrong with its end; "" if nothing is.
        seconds: Wall-clock time.
        tokens: Tokens that its output reported.
    """

    status: int | None
    reason: str
    seconds: float
    tokens: int


class _Output:
    """Copies the output of an agent to a file, up to a limit, and counts tokens in it."""

    def __init__(self, stream: int, path: Path, tokens: str) -> None:
        self.tokens = 0
        self._stream, self._path = stream, path
        self._pattern = re.compile(tokens.encode()) if tokens else None
        self._thread = threading.Thread(target=self._copy, daemon=True)
        self._thread.start()

    def join(self) -> None:
        self._thread.join(GRACE_SECONDS)

    def _copy(self) -> None:
        kept, line = 0, b""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("wb") as file:
            while data := self._read():
                if kept < MAX_TRANSCRIPT:
                    file.write(data[: MAX_TRANSCRIPT - kept])
                    file.flush()
                    kept += len(data)
                    if kept >= MAX_TRANSCRIPT:
                        file.write(b"\n[the rest of the output was dropped]\n")
                line = self._counted(line + data)

    def _counted(self, text: bytes) -> bytes:
        """Counts tokens in whole lines; returns the last, unfinished line."""
        lines, _, rest = text.rpartition(b"\n")
        if self._pattern:
            self.tokens += sum(min(int(n[:9]), 10**9) for n in self._pattern.findall(lines))
        return rest[-_PATTERN_BYTES:]

    def _read(self) -> bytes:
        try:
            return os.read(self._stream, 1 << 16)
        except OSError:
            return b""


def run_agent(
    launch: Launch,
    limits: Limits,
    transcript: Path,
    tokens: str = "",
    stopped: Callable[[], bool] = lambda: False,
    waited: Callable[[], float] = lambda: 0.0,
) -> Ended:
    """Runs an agent until it ends or a limit is reached. Nothing of it runs afterwards.

    Args:
        launch: What to run.
        limits: The limits.
        transcript: The file for its output.
        tokens: A pattern for counts of tokens in the output.
        stopped: Asked again and again whether to stop the agent.
        waited: Seconds in which the judge worked for the agent so far.
    """
    started = time.monotonic()
    process, stream = _start(launch)
    output = _Output(stream, transcript, tokens)
    reason = ""
    while not reason:
        try:
            process.wait(LOOK_SECONDS)
            break
        except subprocess.TimeoutExpired:
            own = time.monotonic() - started - waited()
            reason = _limit(launch, limits, output, own, stopped)
    if reason:
        _end(process)
    output.join()
    os.close(stream)
    status = None if reason else process.returncode
    if status == NOT_CONFINED:
        reason = "the agent did not start: see its transcript"
    elif status:
        reason = f"the agent exited with status {status}{_HINTS.get(status, '')}"
    return Ended(status, reason, time.monotonic() - started, output.tokens)


def _start(launch: Launch) -> tuple[subprocess.Popen[bytes], int]:
    read, write = os.pipe()
    out, into = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "kernel_gym.agents.launch", str(read)],
            pass_fds=[read],
            stdin=subprocess.DEVNULL,
            stdout=into,
            stderr=into,
            env=_environment() if launch.confined else None,
            start_new_session=True,
        )
    finally:
        os.close(read)
        os.close(into)
    with os.fdopen(write, "w", encoding="utf-8") as file:
        json.dump(asdict(launch), file)
    return process, out


def _environment() -> dict[str, str]:
    """The variables of the launcher: those that Python needs, since the agent may read them."""
    kept = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "LANG")
    return {name: os.environ[name] for name in kept if name in os.environ}


def _limit(
    launch: Launch,
    limits: Limits,
    output: _Output,
    seconds: float,
    stopped: Callable[[], bool],
) -> str:
    """The limit that is reached, as a reason; "" if none is."""
    if stopped():
        return "stopped"
    if seconds > limits.seconds:
        return f"stopped after {limits.seconds:g} s"
    if limits.tokens is not None and output.tokens > limits.tokens:
        return f"stopped after {output.tokens} tokens of {limits.tokens}"
    return _too_large(Path(launch.folder))


def _too_large(folder: Path) -> str:
    """Why a workspace holds too much; links are not followed."""
    total = entries = 0
    todo = [str(folder)]
    while todo and entries <= MAX_ENTRIES:
        with suppress(OSError), os.scandir(todo.pop()) as inside:
            for entry in inside:
                entries += 1
                if entries > MAX_ENTRIES:
                    break
                if entry.is_dir(follow_symlinks=False):
                    todo.append(entry.path)
                else:
                    with suppress(OSError):
                        total += 512 * entry.stat(follow_symlinks=False).st_blocks
    if entries > MAX_ENTRIES:
        return f"stopped: the workspace has more than {MAX_ENTRIES} files"
    if total > MAX_WORKSPACE:
        return f"stopped: the workspace has more than {MAX_WORKSPACE >> 30} GiB"
    return ""


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the launcher. The kernel kills its child with it, and all of the process namespace."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
