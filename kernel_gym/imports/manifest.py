"""Manifests: what was imported from a checkout, with hashes of its files and verdicts by device.

A manifest is `<suite>.json` in the folder of imports. What a reader has prepared for a task is
`<suite>/<task>.json` beside it, with `/` in the task's name as `.`. Nothing of the suite itself is
copied: its files are read from the checkout, and their hashes are compared.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kernel_gym.errors import InputError
from kernel_gym.tasks.names import Mode, imports_folder

VERSION = 2
LEFT_OUT = "left out"
"""The head of a note on a form of calls without a workload; the call and the reason follow."""


class ManifestError(InputError, ValueError):
    """A manifest cannot be used. The message names the file and the reason."""


class ImportStatus(StrEnum):
    """The result of an import for a task, on one device."""

    ADMITTED = "admitted"
    FLAGGED = "flagged"
    """It runs, but a control says that its verdicts mean little. Not trained on by default."""
    UNSUPPORTED = "unsupported"


class CompiledBaseline(BaseModel):
    """`torch.compile` of a traced task's reference beside the reference itself, as measured."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hardware: str = ""
    """The model of the device."""
    eager_seconds: tuple[float, ...] = ()
    """Median seconds of one call of the reference, of each train workload."""
    compiled_seconds: tuple[float, ...] = ()
    """The same of its compiled form, timed in alternation."""
    reason: str = ""
    """Why there are no times, in one line."""

    @property
    def speedup(self) -> float | None:
        """Eager seconds over compiled seconds, the geometric mean over train workloads."""
        pairs = zip(self.eager_seconds, self.compiled_seconds, strict=True)
        logs = [math.log(eager / compiled) for eager, compiled in pairs]
        return math.exp(math.fsum(logs) / len(logs)) if logs else None


class DeviceVerdict(BaseModel):
    """The verdict on one task on one device."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    status: ImportStatus
    reason: str = ""
    """Why it is flagged or unsupported, in one line."""
    flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Rules of the protocol that cannot hold for it, such as `no unseen`."""
    controls: dict[str, str] = Field(default_factory=dict)
    """The outcome of each control of the admission."""
    speedup: float | None = None
    """The speedup of the suite's own kernel over itself, which must be about 1."""
    compiled: CompiledBaseline | None = None
    """The compiled baseline of a traced task, and None of other tasks."""


class ManifestEntry(BaseModel):
    """One task of a suite."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    category: str
    mode: Mode | None = None
    """None if the reader does not support the task on any device; then there is a reason."""
    reason: str = ""
    files: dict[str, str] = Field(default_factory=dict)
    """SHA-256 of each file that defines it, by path in the checkout."""
    details: dict[str, Any] = Field(default_factory=dict)
    verdicts: dict[str, DeviceVerdict] = Field(default_factory=dict)
    """By name of the device."""

    def status(self, device: str | None = None) -> ImportStatus | None:
        """Returns the status on a device; without one, the best status on any; None if untried."""
        if self.mode is None:
            return ImportStatus.UNSUPPORTED
        chosen = [v.status for name, v in self.verdicts.items() if device in (None, name)]
        return min(chosen, key=list(ImportStatus).index, default=None)


class Manifest(BaseModel):
    """The tasks that were imported from one checkout of one suite."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: int = VERSION
    suite: str
    checkout: str
    commit: str
    """The commit of the checkout, or empty if it is no Git working tree."""
    licence: str
    """The first line of its licence file, or empty."""
    tasks: dict[str, ManifestEntry]

    def with_entry(self, entry: ManifestEntry) -> Manifest:
        """Returns a manifest with one more entry, or one that is replaced."""
        return self.model_copy(update={"tasks": {**self.tasks, entry.name: entry}})


def manifest_path(suite: str, folder: Path | None = None) -> Path:
    """Returns the path of a suite's manifest."""
    return (folder or imports_folder()) / f"{suite}.json"


def read_manifest(suite: str, folder: Path | None = None) -> Manifest:
    """Reads a manifest.

    Raises:
        ManifestError: There is none, or it is malformed.
    """
    path = manifest_path(suite, folder)
    try:
        manifest = Manifest.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ManifestError(f"{path}: cannot be read ({error.strerror})") from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise ManifestError(f"{path}: key {key!r}: {first['msg']}; import again") from error
    if manifest.version != VERSION:
        raise ManifestError(
            f"{path}: found version {manifest.version}, expected {VERSION}; import again"
        )
    return manifest


def write_manifest(manifest: Manifest, folder: Path | None = None) -> Path:
    """Writes a manifest at once, so that a reader never sees half of it, and returns its path."""
    path = manifest_path(manifest.suite, folder)
    _write(path, manifest.model_dump_json(indent=1) + "\n")
    return path


def data_path(suite: str, task: str, folder: Path | None = None) -> Path:
    """Returns the path of what was prepared for a task."""
    return (folder or imports_folder()) / suite / f"{task.replace('/', '.')}.json"


def read_data(suite: str, task: str, folder: Path | None = None) -> dict[str, object]:
    """Reads what was prepared for a task.

    Raises:
        ManifestError: It is missing or malformed.
    """
    path = data_path(suite, task, folder)
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ManifestError(f"{path}: {error}; import {suite}/{task} again") from error
    if not isinstance(value, dict):
        raise ManifestError(f"{path}: found no object; import {suite}/{task} again")
    return value


def write_data(
    suite: str, task: str, data: Mapping[str, object], folder: Path | None = None
) -> None:
    """Writes what was prepared for a task."""
    _write(data_path(suite, task, folder), json.dumps(data, separators=(",", ":")) + "\n")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.{os.getpid()}")
    half.write_text(text, encoding="utf-8")
    half.replace(path)
