"""Runs a user's own program on a simulated GPU in the same process, and reports every launch.

Nothing is judged here, so device and program share a process. The process is confined like any
worker.
"""

from __future__ import annotations

import ctypes
import linecache
import os
import socket
import sys
import traceback
import types
from typing import Any

import torch

from kernel_gym.protocol.request import Request
from kernel_gym.sandbox.channel import Channel
from kernel_gym.worker.hip import sim as hip
from kernel_gym.worker.sim.local import LocalRuntime

MAX_TRACE = 4000


class ScriptRuntime(LocalRuntime):
    """Requests to a device in the same process, each launch of which is reported."""

    def __init__(self, report: Channel, file: int, options: dict[str, Any]) -> None:
        super().__init__(**options, file=file)
        self._report = report
        self._reported = 0

    def _ask(self, request: Request) -> dict[str, Any]:
        try:
            return super()._ask(request)
        finally:
            for launch in self.gpu.launches[self._reported :]:
                self._report.send({"launch": launch})
            self._reported = len(self.gpu.launches)


def main(fds: list[int], options: dict[str, Any]) -> None:
    """Runs one program. The descriptors are the caller, device memory and the program's output."""
    torch.set_num_threads(1)
    report = Channel(socket.socket(fileno=fds[0]))
    os.dup2(fds[2], 1)
    os.dup2(fds[2], 2)
    sys.stdout = sys.stderr = os.fdopen(1, "w", buffering=1, encoding="utf-8", closefd=False)
    header = report.recv().header
    known = ("threads", "memory", "launch_limit", "arch")
    runtime = ScriptRuntime(report, fds[1], {name: options[name] for name in known})
    gpu = runtime.gpu
    try:
        run = _run_hip if header["language"] == "hip" else _run_python
        status = run(header, runtime)
        error = f"the program ended with status {status}" if status else ""
        report.send({"done": True, "seconds": runtime.seconds, "error": error})
    except BaseException as error:
        fault = gpu.fault["message"] if gpu.fault else ""
        text = (fault or f"{type(error).__name__}: {error}").replace(os.environ["TMPDIR"] + "/", "")
        detail = "" if fault else _trace(error, header["name"])
        report.send({"done": True, "seconds": runtime.seconds, "error": text, "detail": detail})


def _run_python(header: dict[str, Any], runtime: ScriptRuntime) -> int:
    runtime.install()
    path = os.path.join(os.environ["TMPDIR"], header["name"])
    with open(path, "w", encoding="utf-8") as file:
        file.write(header["source"])
    sys.argv = [header["name"], *header["arguments"]]
    module = types.ModuleType("__main__")
    module.__file__ = path
    sys.modules["__main__"] = module
    linecache.checkcache(path)
    try:
        exec(compile(header["source"], path, "exec"), module.__dict__)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _run_hip(header: dict[str, Any], runtime: ScriptRuntime) -> int:
    words = [header["name"], *header["arguments"]]
    status = hip.run_program(header["source"], header["toolchain"], runtime, words)
    ctypes.CDLL(None).fflush(None)
    return status


def _trace(error: BaseException, name: str) -> str:
    """The frames of the traceback in the program's own source."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.endswith(name)]
    lines = [f"{name}:{f.lineno} in {f.name}: {f.line}" for f in frames]
    return "\n".join([*lines, str(error)])[-MAX_TRACE:]
