"""The process in which references are compiled and timed, seen from the admission."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from typing import Any

from kernel_gym.devices.base import Device, Exclusivity
from kernel_gym.devices.cache import cache_folder
from kernel_gym.imports.bench.compiled.main import MEMORY
from kernel_gym.imports.manifest import CompiledBaseline
from kernel_gym.imports.traced.problem import TracedProblem
from kernel_gym.records import Clock

TIMEOUT = 240.0
"""Seconds for one step. Most references are compiled in a few."""


class Missing(Exception):
    """A measurement has no result. The message gives the reason in one line."""


class MissingMemory(Missing):
    """The device has not enough memory for a step."""


class CompilingProcess:
    """One process that compiles and times, and is started again after it has failed.

    Args:
        threads: Compilers that it may run at a time.
    """

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads
        self._child: subprocess.Popen[bytes] | None = None
        self._rest = b""

    def ask(self, step: str, timeout: float = TIMEOUT, **arguments: object) -> Any:
        """Asks for one step and returns its result.

        Raises:
            Missing: The step failed, took too long or ended the process.
            MissingMemory: The step needs more memory than is free.
        """
        child = self._child or self._start()
        assert child.stdin is not None
        try:
            child.stdin.write(json.dumps({"do": step, **arguments}).encode() + b"\n")
            child.stdin.flush()
            answer = json.loads(self._line(child, step, timeout))
        except OSError:
            self.close()
            raise Missing(f"{step}: its process has ended") from None
        if MEMORY in answer:
            raise MissingMemory(str(answer["failed"]))
        if "failed" in answer:
            raise Missing(str(answer["failed"]))
        return answer.get("result", answer)

    def close(self) -> None:
        """Ends the process and the compilers that it has started."""
        if self._child is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()
            for pipe in (self._child.stdin, self._child.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
        self._child, self._rest = None, b""

    def _start(self) -> subprocess.Popen[bytes]:
        folder = cache_folder("compiled")
        own = {
            "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
            "TRITON_CACHE_DIR": str(folder / "triton"),
            "TORCHINDUCTOR_COMPILE_THREADS": str(self._threads),
        }
        self._child = subprocess.Popen(
            [sys.executable, "-m", "kernel_gym.imports.bench.compiled.main"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **own},
            start_new_session=True,
        )
        return self._child

    def _line(self, child: subprocess.Popen[bytes], step: str, timeout: float) -> bytes:
        assert child.stdout is not None
        end = time.monotonic() + timeout
        while b"\n" not in self._rest:
            left = end - time.monotonic()
            if left <= 0 or not select.select([child.stdout], [], [], left)[0]:
                self.close()
                raise Missing(f"{step}: not done within {timeout:g} s")
            part = os.read(child.stdout.fileno(), 1 << 16)
            if not part:
                raise OSError
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\n")
        return line


class CompiledTimer:
    """Times references against their compiled form, one task at a time.

    Args:
        threads: Compilers that may run at a time.
    """

    def __init__(self, threads: int = 1) -> None:
        self._process = CompilingProcess(threads)

    def refusals(self, problem: TracedProblem, device: Device) -> list[str]:
        """Returns why the judge would refuse the reference on train workloads of the device.

        Raises:
            Missing: A step failed.
            MissingMemory: The device has not enough memory for a workload, which the text names.
        """
        texts = []
        for number, workload in enumerate(self._open(problem, device)):
            with device.held(Exclusivity.ALONE):
                try:
                    texts.append(str(self._process.ask("check", number=number)))
                except MissingMemory as error:
                    raise MissingMemory(f"{workload}: {error}") from None
        return [text for text in texts if text]

    def measure(self, problem: TracedProblem, device: Device) -> CompiledBaseline:
        """Returns what is known of the compiled baseline, or the reason why there is none."""
        hardware = device.description.hardware
        pairs = []
        try:
            for number in range(len(self._open(problem, device))):
                pairs.append(_seconds(self._process, device, number))
        except Missing as error:
            return CompiledBaseline(hardware=hardware, reason=str(error))
        eager, compiled = zip(*pairs, strict=True)
        return CompiledBaseline(hardware=hardware, eager_seconds=eager, compiled_seconds=compiled)

    def close(self) -> None:
        """Ends the process."""
        self._process.close()

    def _open(self, problem: TracedProblem, device: Device) -> list[str]:
        """Gives the process a problem and returns its train workloads as texts."""
        described = device.description
        simulated = described.clock is Clock.MODELLED
        opened = self._process.ask(
            "open",
            name=problem.name,
            text=_text(problem),
            scale=str(described.scale),
            device="cuda" if simulated else str(described.torch_device),
            simulate=described.arch if simulated else "",
            flush=described.spec.flush_bytes,
        )
        return [str(workload) for workload in opened["workloads"]]


def _seconds(process: CompilingProcess, device: Device, number: int) -> tuple[float, float]:
    """Returns the seconds of one workload: eager and compiled."""
    try:
        refused = process.ask("compile", number=number)
    except MissingMemory:  # others compile at the same time
        with device.held(Exclusivity.ALONE):
            refused = process.ask("compile", number=number)
    if refused:
        raise Missing(f"its compiled answer is refused {refused}")
    with device.held(Exclusivity.ALONE):
        eager, compiled = process.ask("time", number=number)
    return float(eager), float(compiled)


def _text(problem: TracedProblem) -> str:
    if problem.text:
        return problem.text
    assert problem.folder is not None
    return (problem.folder / "problem.py").read_text(encoding="utf-8")
