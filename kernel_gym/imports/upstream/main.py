"""The process that runs one program on files of a suite, confined as a candidate's worker.

On a simulated device the process also is the device. On a real GPU the program uses that GPU.

Nothing is judged here: what the suite's code does is recorded, and admission tries it afterwards.
"""

from __future__ import annotations

import importlib
import os
import socket
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

import torch

from kernel_gym.devices.sim.simulated_gpu import UNLIMITED_SECONDS
from kernel_gym.programs.local_runtime import LocalRuntime
from kernel_gym.protocol.request import Request
from kernel_gym.sandbox.channel import Channel
from kernel_gym.simulated_rocm import extensions
from kernel_gym.tasks.embedded import uses
from kernel_gym.worker.recording import flydsl
from kernel_gym.worker.sim.runtime import DeviceAnswer, DeviceError

MAX_FILES_BYTES = 64 << 20
"""Most bytes of the files of one task."""
MAX_TRACE = 2000
MAX_PROGRAM_INSTRUCTIONS = 1_000_000_000
"""Wave instructions of a launch of a program whose launches have to end."""
PROGRAMS: Mapping[str, str] = {
    "fastkernels_rule": "kernel_gym.imports.upstream.fastkernels_rule",
    "own_tests": "kernel_gym.imports.upstream.own_tests",
    "record": "kernel_gym.imports.upstream.record",
}
"""The module of each program. It has `run(folder, options)`, which returns JSON values."""


class DeviceOptions(TypedDict, total=False):
    """The device of a program, see `main` and `simulate`."""

    memory: int
    arch: str
    threads: int
    flydsl: bool


def main(fds: list[int], options: DeviceOptions) -> None:
    """Serves one request.

    Args:
        fds: The caller, the output of the program, and on a simulated device its memory.
        options: `memory`: bytes of the device. A simulated device also has `arch` and `threads`.
    """
    torch.set_num_threads(1)
    caller = Channel(socket.socket(fileno=fds[0]), buffers=MAX_FILES_BYTES)
    os.dup2(fds[1], 1)
    os.dup2(fds[1], 2)
    sys.stdout = sys.stderr = os.fdopen(1, "w", buffering=1, encoding="utf-8", closefd=False)
    message = caller.recv()
    folder = Path(os.environ["TMPDIR"]) / "checkout"
    _write(folder, message.header["files"], message.buffers)
    os.chdir(folder)
    try:
        if "arch" in options:
            most = message.header["options"].get("launch_instructions")
            simulate({**options, "flydsl": _has_flydsl(folder)}, fds[2], most)
        else:
            use_gpu(options["memory"])
        program = importlib.import_module(PROGRAMS[message.header["program"]])
        answer = {"answer": program.run(folder, message.header["options"])}
    except BaseException as error:  # code of a suite may raise anything, SystemExit included
        answer = {"error": f"{type(error).__name__}: {error}"[:MAX_TRACE], "trace": _trace(error)}
    caller.send(answer)


def simulate(options: DeviceOptions, memory: int, most: int | None) -> None:
    """Makes a simulated GPU the device of PyTorch and Triton.

    Args:
        options: See `main`; with `flydsl` set, FlyDSL compiles for this GPU.
        memory: The descriptor of its memory.
        most: Wave instructions after which a launch is stopped and counts as done; None for a
            program whose launches have to end.
    """
    runtime = (LocalRuntime if most is None else ImpatientRuntime)(
        threads=options["threads"],
        memory=options["memory"],
        launch_limit=UNLIMITED_SECONDS,
        launch_instructions=most or MAX_PROGRAM_INSTRUCTIONS,
        arch=options["arch"],
        file=memory,
        bounds="warn",  # as on a real GPU, where such accesses go unnoticed
    )
    runtime.install()
    os.environ["TORCH_EXTENSIONS_DIR"] = os.environ["TMPDIR"]
    extensions.install()
    if options.get("flydsl"):
        flydsl.check_installed()
        flydsl.prepare(options["arch"], lambda assembler: assembler)


def _has_flydsl(folder: Path) -> bool:
    """Whether a file of a task imports FlyDSL."""
    texts = (path.read_text(encoding="utf-8", errors="replace") for path in folder.rglob("*.py"))
    return any(uses("flydsl", text) for text in texts)


def use_gpu(memory: int) -> None:
    """Creates the context on the real GPU that this process sees.

    No launch can be stopped there. The caller ends the process when its time is over.

    Args:
        memory: Bytes of the GPU that PyTorch may allocate.
    """
    torch.cuda.init()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, memory / total))


class ImpatientRuntime(LocalRuntime):
    """A simulated GPU on which a launch that does too much is stopped and counts as done.

    A recorder needs the arguments of a call and which of them it changes. The first workgroups of
    a launch show that.
    """

    def _ask(self, request: Request) -> DeviceAnswer:
        try:
            return super()._ask(request)
        except DeviceError:
            if not self.gpu.fault or self.gpu.fault["kind"] != "instruction_limit":
                raise
            self.gpu.fault = None
            return {}


def _write(folder: Path, names: list[str], contents: tuple[bytes, ...]) -> None:
    folder.mkdir(parents=True)
    for name, content in zip(names, contents, strict=True):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))[-MAX_TRACE:]
