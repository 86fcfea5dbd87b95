"""Records what a program does on its simulated GPU: one document for each process.

A document consists of JSON objects, one a line, written as things happen. So whatever ends the
process leaves all but the last line on record. `docs/simulator.md` describes the format.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path

from kernel_gym.sim.timing.launch_profile import LaunchDescription
from kernel_gym.simulated_rocm.settings import SimSettings

VERSION = 1
Sink = Callable[[dict[str, object]], None]


class ResultRecorder:
    """Turns what happens on a device into records.

    Args:
        sink: Takes each record, a JSON object.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.others: Callable[[], float] = lambda: 0.0
        """Modelled seconds of what the device does not count itself: operators of PyTorch."""
        self._longest: dict[str, float] = {}
        self._seen: set[tuple[object, ...]] = set()

    @classmethod
    def from_environment(cls, host: str, command: Sequence[str]) -> ResultRecorder | None:
        """Returns a recorder into the folder that the environment names, or None without one.

        Args:
            host: What drives the device: `python` or `hip`.
            command: The words of the process.
        """
        settings = SimSettings.from_environment()
        if settings is None or settings.results is None:
            return None
        return cls(Document(settings.results, host, list(command), settings.device).write)

    def launch(self, launch: LaunchDescription, clock: float) -> None:
        """Records a launch that ran to its end.

        Args:
            launch: `name`, `grid`, `block`, `lds` (bytes), `seconds` and `profile`.
            clock: Modelled seconds of the device so far.
        """
        name, seconds = launch["name"], launch["seconds"]
        record: dict[str, object] = {
            "record": "launch",
            "kernel": name,
            "grid": launch["grid"],
            "block": launch["block"],
            "lds": launch["lds"],
            "seconds": seconds,
            "clock": clock + self.others(),
        }
        if (seconds or 0.0) > self._longest.get(name, -1.0):
            self._longest[name] = seconds or 0.0
            record["profile"] = launch["profile"]
        self._sink(record)

    def fault(self, fault: Mapping[str, object]) -> None:
        """Records the fault that stopped a launch; its fields are those of `Fault`."""
        self._sink({"record": "fault", **fault})

    def finding(self, finding: Mapping[str, object]) -> None:
        """Records what was found in a launch that continued, once for each place.

        Its fields are those of `Fault`.
        """
        if self._is_new("finding", *place_of(finding)):
            self._sink({"record": "finding", **finding})

    def missing(self, what: str, name: str, where: str, message: str) -> None:
        """Records something that the program needed and that is not there; once for each place.

        Args:
            what: `instruction`, `operator`, `api` or `library`.
            name: Its name.
            where: The place of the call, as `file:line`, or the kernel.
            message: One line with what can be done.
        """
        if self._is_new("missing", what, name, where):
            record = {"what": what, "name": name, "where": where, "message": message}
            self._sink({"record": "missing", **record})

    def failure(self, message: str) -> None:
        """Records that this process has no device, and why."""
        self._sink({"record": "failure", "message": message})

    def end(self, clock: float) -> None:
        """Records a regular end of the process, with the modelled seconds of the device."""
        self._sink({"record": "end", "clock": clock + self.others()})

    def _is_new(self, *key: object) -> bool:
        known = key in self._seen
        self._seen.add(key)
        return not known


class Document:
    """The file of one process. A forked child gets one of its own.

    Args:
        folder: Where it lies.
        host: What drives the device: `python` or `hip`.
        command: The words of the process.
        device: Name of the device.
    """

    def __init__(self, folder: Path, host: str, command: list[str], device: str) -> None:
        self._folder = folder
        self._first = {"host": host, "command": command, "device": device}
        self._pid = -1
        self._file = -1

    def write(self, record: dict[str, object]) -> None:
        """Appends a record by one call of the system."""
        if self._pid != os.getpid():
            self._begin()
        self._append(record)

    def _begin(self) -> None:
        self._pid = os.getpid()
        path = self._folder / f"{self._pid}-{secrets.token_hex(4)}.jsonl"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._file = os.open(path, flags, 0o644)
        ids = {"version": VERSION, "pid": self._pid, "parent": os.getppid()}
        self._append(
            {"record": "process", **ids, **self._first, "started": time.time(), "facts": facts()}
        )

    def _append(self, record: dict[str, object]) -> None:
        try:
            text = json.dumps(record, allow_nan=False)
        except ValueError:
            text = json.dumps(_finite(record))
        os.write(self._file, f"{text}\n".encode())


def place_of(finding: Mapping[str, object]) -> tuple[str, ...]:
    """Returns what makes a finding the same as another one."""
    return tuple(str(finding[key]) for key in ("kind", "kernel", "source", "other_source"))


def facts() -> dict[str, str]:
    """Returns the versions of what decides a result."""
    versions = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in ("torch", "triton"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return versions


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
