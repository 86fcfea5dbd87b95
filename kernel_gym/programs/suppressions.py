"""Suppresses known findings of audits by a file: each entry gives a place and a reason."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from kernel_gym.errors import InputError
from kernel_gym.programs.audit_findings import places_of
from kernel_gym.programs.results import ProgramResult, of_audits
from kernel_gym.sim.engine.faults import AUDIT_KINDS
from kernel_gym.symbols import plain_name

TABLE = "suppress"
MAX_BYTES = 1 << 20
"""Largest file of suppressions."""
Text = Annotated[str, Field(min_length=1)]


class Suppression(BaseModel):
    """A known finding. It matches if all of its fields do.

    Attributes:
        reason: Why the finding is accepted.
        source: A pattern of `FILE` or `FILE:LINE` of one of the two accesses, such as `lib/*.py`.
            Names are relative to the repository.
        kernel: A pattern of the kernel's name.
        kind: The kind of the finding, such as `lds_race`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    reason: Text
    source: Text | None = None
    kernel: Text | None = None
    kind: Text | None = None

    @field_validator("kind")
    @classmethod
    def _is_known(cls, kind: str | None) -> str | None:
        if kind is not None and kind not in AUDIT_KINDS:
            raise ValueError(f"found {kind!r}, expected {', '.join(sorted(AUDIT_KINDS))}")
        return kind

    @model_validator(mode="after")
    def _is_limited(self) -> Suppression:
        if self.source is None and self.kernel is None:
            raise ValueError("expected source or kernel: an entry without both hides everything")
        return self

    def matches(self, record: ProgramResult, root: Path) -> bool:
        """Returns whether a finding is this one."""
        names = [plain_name(record["kernel"])]
        files = [name for place in places_of(record, root) for name in (place.file, str(place))]
        wanted = ((self.kind, [record["kind"]]), (self.kernel, names), (self.source, files))
        return all(
            pattern is None or any(fnmatchcase(name, pattern) for name in names)
            for pattern, names in wanted
        )


def read_suppressions(path: Path) -> list[Suppression]:
    """Reads a file of suppressions: TOML with tables `[[suppress]]`.

    Raises:
        InputError: It cannot be read, or an entry is malformed.
    """
    try:
        content = path.read_bytes()[: MAX_BYTES + 1]
        if len(content) > MAX_BYTES:
            raise InputError(f"{path}: more than {MAX_BYTES} bytes")
        data = tomllib.loads(content.decode())
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: found invalid TOML ({error})") from error
    entries = data.pop(TABLE, [])
    if data or not isinstance(entries, list):
        raise InputError(f"{path}: found {next(iter(data), TABLE)!r}, expected only [[{TABLE}]]")
    return [_entry(path, number, entry) for number, entry in enumerate(entries, start=1)]


def _entry(path: Path, number: int, entry: object) -> Suppression:
    try:
        return Suppression.model_validate(entry)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        text = first["msg"].removeprefix("Value error, ")
        raise InputError(f"{path}: entry {number}: {where and where + ': '}{text}") from error


def suppress(
    result: ProgramResult, suppressions: list[Suppression], root: Path
) -> list[Suppression]:
    """Marks the findings of audits that are known: each gets its reason as `suppressed`.

    A fault has stopped its launch and is never suppressed.

    Args:
        result: The result of a run.
        suppressions: The known findings. The first one that matches gives the reason.
        root: The folder to which names of files are relative.

    Returns:
        The suppressions that match no finding.
    """
    used = set()
    for record in of_audits(result["findings"]):
        match = next((known for known in suppressions if known.matches(record, root)), None)
        if match is not None:
            record["suppressed"] = match.reason
            used.add(match)
    return [known for known in suppressions if known not in used]
