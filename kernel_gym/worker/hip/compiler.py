"""The compiler's process: runs commands over a source, and sees nothing but its own folders.

What a source includes ends up in messages that the policy reads, so that the compiler may see no
file of the machine besides the compiler itself, its libraries and its headers.
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kernel_gym.sandbox.channel import Channel

MAX_LOG = 256 << 10
"""Bytes kept of a compiler's messages, from their beginning."""


def main(fds: list[int], options: dict[str, Any]) -> None:
    """Serves the judge over the descriptor: files and commands in, messages and results out."""
    judge = Channel(socket.socket(fileno=fds[0]))
    judge.send({"confinement": options["confinement"]})
    while True:
        header = judge.recv().header
        folder = Path(os.environ["TMPDIR"])
        logs, failed = build(folder, header["files"], header["commands"])
        results = [] if failed else [(folder / name).read_bytes() for name in header["results"]]
        judge.send({"logs": logs, "failed": failed}, *results)


def build(
    folder: Path, files: Mapping[str, str], commands: Sequence[Sequence[str]]
) -> tuple[list[str], bool]:
    """Writes files and runs commands over them side by side.

    Args:
        folder: where the files are put and the commands run.
        files: texts by file name.
        commands: compilers with their arguments.

    Returns:
        What each of them printed, and whether any of them failed.
    """
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    logs = [folder / f"{number}.log" for number in range(len(commands))]
    running = [_start(command, folder, log) for command, log in zip(commands, logs, strict=True)]
    failed = any([process.wait() for process in running])  # all of them are waited for
    return [_first_bytes(log) for log in logs], failed


def _start(command: Sequence[str], folder: Path, log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )


def _first_bytes(log: Path) -> str:
    with log.open("rb") as file:
        return file.read(MAX_LOG).decode(errors="replace")
