"""The process of the HIP compiler: runs commands over a source and sees only its own folders.

A compiler quotes included files in its messages, and a policy reads these messages. So the process
sees no file of the machine except the compiler itself, its libraries and its headers.
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernel_gym.protocol.request import decode
from kernel_gym.protocol.worker import BuildHip
from kernel_gym.sandbox.channel import Channel

MAX_LOG = 256 << 10
"""Bytes kept of a compiler's messages, from their beginning."""


def main(fds: list[int], options: dict[str, object]) -> None:
    """Serves `BuildHip` requests of the judge over the descriptor."""
    judge = Channel(socket.socket(fileno=fds[0]))
    judge.send({"confinement": options["confinement"]})
    while True:
        request = decode(BuildHip, judge.recv().header)
        folder = Path(os.environ["TMPDIR"])
        logs, failed = build(folder, request.files, request.commands, request.in_turn)
        results = [] if failed else [(folder / name).read_bytes() for name in request.results]
        judge.send({"logs": logs, "failed": failed}, *results)


def build(
    folder: Path,
    files: Mapping[str, str],
    commands: Sequence[Sequence[str]],
    in_turn: bool = False,
) -> tuple[list[str], bool]:
    """Writes files and runs commands over them.

    Args:
        folder: Where the files are written and the commands run.
        files: Texts by file name.
        commands: Compilers with their arguments.
        in_turn: Whether a command runs only if those before it succeeded; else all run at a time.

    Returns:
        What each command printed, and whether any of them failed.
    """
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    failed, logs = False, []
    for together in [[c] for c in commands] if in_turn else [commands]:
        places = [folder / f"{number}.log" for number in range(len(together))]
        running = [_start(c, folder, log) for c, log in zip(together, places, strict=True)]
        failed = any([process.wait() for process in running])  # a list: waits for all of them
        logs += [_first_bytes(log) for log in places]
        if failed:
            break
    return logs, failed


def _start(command: Sequence[str], folder: Path, log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )


def _first_bytes(log: Path) -> str:
    with log.open("rb") as file:
        return file.read(MAX_LOG).decode(errors="replace")
