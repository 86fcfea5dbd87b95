"""Files of records, one JSON object per line. They survive a crash of the process that writes."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from kernel_gym.errors import InputError
from kernel_gym.records import Record

R = TypeVar("R", bound=Record)


class StoreError(InputError, ValueError):
    """A stored file cannot be used. The message gives the reason and what to do."""


def read_lines(path: Path, kind: type[R]) -> list[R]:
    """Reads all complete lines. A last line without a newline, cut off by a crash, is ignored.

    Raises:
        StoreError: A line is malformed. The message names the line and the error.
    """
    if not path.exists():
        return []
    *lines, _cut_off = path.read_bytes().split(b"\n")  # may be cut off within a character
    records = []
    for number, line in enumerate(lines, start=1):
        try:
            records.append(kind.model_validate_json(line))
        except ValidationError as error:
            why = f"{path}, line {number}: {first_line(error)}"
            raise StoreError(f"{why}; to go on without it, delete this line") from error
    return records


def append_line(path: Path, record: Record) -> None:
    """Appends a record. It is written to the file when this returns."""
    with path.open("a", encoding="utf-8") as lines:
        lines.write(record.model_dump_json() + "\n")


def drop_cut_off(path: Path) -> None:
    """Removes a last line without a newline, so that the next line does not continue it."""
    if path.exists() and not (content := path.read_bytes()).endswith(b"\n"):
        write_whole(path, content[: content.rfind(b"\n") + 1].decode())


def write_lines(path: Path, records: Iterable[Record]) -> None:
    """Replaces the content of a file by these records."""
    write_whole(path, "".join(record.model_dump_json() + "\n" for record in records))


def write_whole(path: Path, text: str) -> None:
    """Replaces a file atomically. After a crash it has the old or the new content.

    Each call writes a draft of its own name beside the file, so the last of several writers wins. A
    failed call removes its draft.

    Raises:
        OSError: The draft cannot be written, for instance because the disk is full.
    """
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    try:
        with draft.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def first_line(error: ValidationError) -> str:
    """Returns the first error of a malformed record in one line."""
    first = error.errors()[0]
    key = ".".join(map(str, first["loc"])) or "line"
    value = first["input"]
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    return f"{key}: found {json.dumps(value, default=str)[:60]}, expected: {first['msg']}"
