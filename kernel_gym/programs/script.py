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
from dataclasses import dataclass, field
from typing import Any

import torch

from kernel_gym.devices.sim.hip_files import SOURCE
from kernel_gym.programs.local_runtime import LocalRuntime
from kernel_gym.sandbox.channel import Channel
from kernel_gym.simulated_rocm.result_recorder import ResultRecorder
from kernel_gym.torch_device import library
from kernel_gym.worker.hip import sim as hip

MAX_TRACE = 4000
OPTIONS = ("threads", "memory", "launch_limit", "arch", "audit", "bounds")
"""The caller's description of the device."""


@dataclass(frozen=True)
class ConfinedProgram:
    """A program as the caller sends it.

    Attributes:
        language: `hip` or `python`.
        name: The name of its file.
        source: Its text.
        arguments: The words behind its name.
        toolchain: The compiler of HIP; empty for Python.
    """

    language: str
    name: str
    source: str
    arguments: list[str]
    toolchain: dict[str, list[str]] = field(default_factory=dict)


def main(fds: list[int], options: dict[str, Any]) -> None:
    """Runs one program. The descriptors are the caller, device memory and the program's output."""
    torch.set_num_threads(1)
    report = Channel(socket.socket(fileno=fds[0]))
    os.dup2(fds[2], 1)
    os.dup2(fds[2], 2)
    sys.stdout = sys.stderr = os.fdopen(1, "w", buffering=1, encoding="utf-8", closefd=False)
    program = ConfinedProgram(**report.recv().header)
    recorder = ResultRecorder(lambda record: report.send(_own_names(record, program.name)))
    recorder.others = library.seconds
    known = {name: options[name] for name in OPTIONS}
    runtime = LocalRuntime(**known, file=fds[1], observer=recorder)
    status, text, detail = 1, "", ""
    try:
        run = _run_hip if program.language == "hip" else _run_python
        status = run(program, runtime)
        text = f"the program ended with status {status}" if status else ""
    except BaseException as error:  # the program's own code may raise anything
        text = f"{type(error).__name__}: {error}{_advice(error)}"
        detail = "" if runtime.gpu.fault else _trace(error, program.name)
    if runtime.gpu.fault:  # whatever the program made of it
        text = str(runtime.gpu.fault["message"])
    recorder.end(runtime.gpu.before + runtime.gpu.seconds)
    text = _own_name(text, program.name)
    report.send({"done": True, "status": status, "error": text, "detail": detail})


def _own_names(record: dict[str, object], name: str) -> dict[str, object]:
    """Returns a record in which the program's file has its author's name."""
    return {
        key: _own_name(value, name) if isinstance(value, str) else value
        for key, value in record.items()
    }


def _own_name(text: str, name: str) -> str:
    return text.replace(os.environ["TMPDIR"] + "/", "").replace(f"./{SOURCE}", name)


def _run_python(program: ConfinedProgram, runtime: LocalRuntime) -> int:
    runtime.install()
    path = os.path.join(os.environ["TMPDIR"], program.name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(program.source)
    sys.argv = [program.name, *program.arguments]
    module = types.ModuleType("__main__")
    module.__file__ = path
    sys.modules["__main__"] = module
    linecache.checkcache(path)
    try:
        exec(compile(program.source, path, "exec", dont_inherit=True), module.__dict__)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _run_hip(program: ConfinedProgram, runtime: LocalRuntime) -> int:
    words = [program.name, *program.arguments]
    status = hip.run_program(program.source, program.toolchain, runtime, words)
    ctypes.CDLL(None).fflush(None)
    return status


def _advice(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError):
        return "; a confined program sees no file but its own: try kernel-gym sim -- python FILE"
    return ""


def _trace(error: BaseException, name: str) -> str:
    """The frames of the traceback in the program's own source."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.endswith(name)]
    lines = [f"{name}:{f.lineno} in {f.name}: {f.line}" for f in frames]
    return "\n".join([*lines, str(error)])[-MAX_TRACE:]
