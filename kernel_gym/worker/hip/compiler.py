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
        logs, failed = build(folder, request.files, request.commands)
        results = [] if failed else [(folder / name).read_bytes() for name in request.results]
        judge.send({"logs": logs, "failed": failed}, *results)


def build(
    folder: Path, files: Mapping[str, str], commands: Sequence[Sequence[str]]
) -> tuple[list[str], bool]:
    """Writes files and runs commands over them in parallel.

    Args:
        folder: Where the files are written and the commands run.
        files: Texts by file name.
        commands: Compilers with their arguments.

    Returns:
        What each command printed, and whether any of them failed.
    """
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    logs = [folder / f"{number}.log" for number in range(len(commands))]
    running = [_start(command, folder, log) for command, log in zip(commands, logs, strict=True)]
    failed = any([process.wait() for process in running])  # a list: waits for all of them
    return [_first_bytes(log) for log in logs], failed


def _start(command: Sequence[str], folder: Path, log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )


def _first_bytes(log: Path) -> str:
    with log.open("rb") as file:
        return file.read(MAX_LOG).decode(errors="replace")
