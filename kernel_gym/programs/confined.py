"""Runs one file in a confined process with a simulated GPU: for code that one does not trust."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kernel_gym.errors import InputError
from kernel_gym.inert import inert_text
from kernel_gym.programs.results import Summary
from kernel_gym.simulated_rocm.settings import SimSettings

if TYPE_CHECKING:
    from kernel_gym.programs.results import ProgramResult
    from kernel_gym.sandbox.spawn import Child

LANGUAGES = {".py": "triton", ".hip": "hip", ".cpp": "hip", ".cu": "hip"}
"""The language of a file, by its ending."""
TIMEOUT = 600.0
"""Default of the seconds for a whole program."""
MAX_OUTPUT = 1 << 20
CRASH = "the program ended the process before it was done (a crash, or exit())"


def run_program(
    header: dict[str, object],
    settings: SimSettings,
    timeout: float = TIMEOUT,
    watch: Callable[[Summary], None] = lambda summary: None,
) -> ProgramResult:
    """Runs a program in a confined process.

    Args:
        header: Its name, language, source and arguments.
        settings: The device. The folder for results is not used.
        timeout: Seconds for all of it.
        watch: Is called after each record.

    Returns:
        The JSON of a `Summary`, with ``device``, ``status`` (None after a crash or a time-out),
        ``timed_out``, ``output`` (text), ``error`` and ``detail`` (empty when it ended well).

    Raises:
        InputError: It is a HIP program and the compiler is missing.
    """
    from kernel_gym.devices.sim import memory as sim_memory
    from kernel_gym.programs.device_size import device_memory
    from kernel_gym.sandbox.confine import WorkerLimits
    from kernel_gym.sandbox.spawn import shared_template

    header = _with_toolchain(header, settings.arch)
    memory, output = sim_memory.create_file(), os.memfd_create("kernel-gym-output")
    options = {
        "threads": settings.threads or os.cpu_count() or 1,
        "memory": settings.memory or device_memory(),
        "launch_limit": timeout,
        "arch": settings.arch,
        "audit": settings.audit,
        "bounds": settings.bounds,
    }
    limits = WorkerLimits(memory=8 << 30, cpu_seconds=int(timeout) * 64)
    child = shared_template().fork("script", [memory, output], options, limits)
    summary, last = Summary(), Last()
    try:
        child.channel.send(header)
        summary.add(_seen(_records(child, timeout, last), summary, watch))
        os.lseek(output, 0, os.SEEK_SET)
        text = os.read(output, MAX_OUTPUT).decode(errors="replace")
        return {"device": settings.device, **summary.to_json(), **vars(last), "output": text}
    finally:
        child.close()
        os.close(memory)
        os.close(output)


class Last:
    """The last message of a program, or the failure that came in its place."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.timed_out = False
        self.error = ""
        self.detail = ""

    def take(self, message: dict[str, object]) -> None:
        """Takes over a message, which the program may have forged."""
        status = message.get("status")
        self.status = status & 0xFF if isinstance(status, int) else None
        self.error = inert_text(message.get("error", ""))
        self.detail = inert_text(message.get("detail", ""))


def _with_toolchain(header: dict[str, object], arch: str) -> ProgramResult:
    from kernel_gym.devices.sim.toolchain import HipToolchain, hip_toolchain

    if header["language"] != "hip":
        return header
    chain = hip_toolchain(arch)
    if not isinstance(chain, HipToolchain):
        raise InputError(f"{chain.problem}; install it: {chain.fix}")
    return header | {"toolchain": {"device": list(chain.device), "host": list(chain.host)}}


def _seen(
    records: Iterator[dict[str, object]], summary: Summary, watch: Callable[[Summary], None]
) -> Iterator[dict[str, object]]:
    for record in records:
        yield record
        watch(summary)


def _records(child: Child, timeout: float, last: Last) -> Iterator[dict[str, object]]:
    """Yields the records of the program's process until it ends."""
    from kernel_gym.sandbox.channel import ChannelError, ChannelTimeout

    deadline = time.monotonic() + timeout
    while True:
        try:
            header = child.channel.recv(max(0.01, deadline - time.monotonic())).header
        except ChannelTimeout:
            last.timed_out, last.error = True, f"not done within {timeout:g} s (--timeout)"
            return
        except ChannelError:
            last.error = CRASH
            return
        if header.get("done"):
            last.take(header)
            return
        yield header
