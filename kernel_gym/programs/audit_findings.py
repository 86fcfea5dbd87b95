"""Findings of an audited run, one for each kind and pair of source lines.

A kernel that is compiled for several types, or launched by several processes, has the same fault
each time. A fix changes one of two lines, so these lines identify the finding. Code without source
lines is identified by its kernel and instruction.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from kernel_gym.programs.results import ProgramResult
from kernel_gym.sim.engine.faults import AUDIT_KINDS
from kernel_gym.symbols import plain_name


class SourcePlace(NamedTuple):
    """A line of a source file; `file` is relative to the repository if it lies in it."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class AuditFinding:
    """A fault that was found in one or several launches.

    Attributes:
        kind: A name in `kernel_gym.sim.engine.faults.KINDS`.
        message: One line of the first launch that had it: both accesses and their waves.
        kernels: The kernels that have it.
        instruction: Assembler text of the access that was found.
        places: The lines of both accesses, the found one first. One or none where the source is
            not known.
        fails: Whether it fails the run: a finding of an audit, or a fault that stopped a launch.
        reason: Why it is suppressed, or empty.
    """

    kind: str
    message: str
    kernels: tuple[str, ...]
    instruction: str
    places: tuple[SourcePlace, ...]
    fails: bool
    reason: str


def audit_findings(result: ProgramResult, root: Path) -> list[AuditFinding]:
    """Returns the findings and faults of a run, sorted by place.

    A finding is suppressed if each of its records is.

    Args:
        result: The result of a run.
        root: The folder to which file names become relative.
    """
    groups: dict[object, list[dict[str, object]]] = {}
    for record in [*result["faults"], *result["findings"]]:
        places = frozenset(places_of(record, root))
        where = places or (record["kernel"], record["instruction"])
        groups.setdefault((record["kind"], where), []).append(record)
    merged = [_merged(records, result, root) for records in groups.values()]
    return sorted(merged, key=lambda finding: (finding.places, finding.kind, finding.kernels))


def _merged(records: list[dict[str, Any]], result: ProgramResult, root: Path) -> AuditFinding:
    first = records[0]
    reasons = [record.get("suppressed", "") for record in records]
    return AuditFinding(
        kind=first["kind"],
        message=first["message"],
        kernels=tuple(sorted({plain_name(record["kernel"]) for record in records})),
        instruction=first["instruction"],
        places=places_of(first, root),
        fails=first in result["faults"] or first["kind"] in AUDIT_KINDS,
        reason=reasons[0] if all(reasons) else "",
    )


def places_of(record: dict[str, Any], root: Path) -> tuple[SourcePlace, ...]:
    """Returns the lines of a finding, each once, the found access first."""
    places = (_place(record[key], root) for key in ("source", "other_source"))
    return tuple(dict.fromkeys(place for place in places if place))


def _place(source: str, root: Path) -> SourcePlace | None:
    file, _, line = source.rpartition(":")
    if not file or not line.isdecimal():
        return None
    path = Path(os.path.normpath(root / file))
    inside = path.is_relative_to(root)
    return SourcePlace((path.relative_to(root) if inside else path).as_posix(), int(line))


def repository_root(folder: Path) -> Path:
    """Returns the folder of the git checkout that holds a folder, or else the folder itself."""
    folder = folder.resolve()
    checkouts = (above for above in (folder, *folder.parents) if (above / ".git").exists())
    return next(checkouts, folder)
