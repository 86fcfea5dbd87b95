"""Files of records, one a line: what a run found so far, whatever ended it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from kernel_gym.errors import InputError
from kernel_gym.records import Record

R = TypeVar("R", bound=Record)


class StoreError(InputError, ValueError):
    """What a run keeps cannot be used as asked; the message says why and what to do."""


def read_lines(path: Path, kind: type[R]) -> list[R]:
    """Every whole line. A last line without its end was cut off by a crash and is left out.

    Raises:
        StoreError: A line is no such record; the message says which, and what is wrong with it.
    """
    if not path.exists():
        return []
    *lines, _cut_off = path.read_bytes().split(b"\n")  # cut off anywhere, within a character too
    records = []
    for number, line in enumerate(lines, start=1):
        try:
            records.append(kind.model_validate_json(line))
        except ValidationError as error:
            raise StoreError(f"{path}, line {number}: {first_line(error)}") from error
    return records


def append_line(path: Path, record: Record) -> None:
    """Adds a record; it is on disk when this returns."""
    with path.open("a", encoding="utf-8") as lines:
        lines.write(record.model_dump_json() + "\n")


def drop_cut_off(path: Path) -> None:
    """Removes a last line without its end, which a crash left: the next would be glued to it."""
    if path.exists() and not (found := path.read_bytes()).endswith(b"\n"):
        write_whole(path, found[: found.rfind(b"\n") + 1].decode())


def write_lines(path: Path, records: Iterable[Record]) -> None:
    """Puts these records in the place of what the file held."""
    write_whole(path, "".join(record.model_dump_json() + "\n" for record in records))


def write_whole(path: Path, text: str) -> None:
    """Replaces a file whole: a crash leaves the old one or the new one."""
    draft = path.with_name(path.name + ".part")
    draft.write_text(text, encoding="utf-8")
    os.replace(draft, path)


def first_line(error: ValidationError) -> str:
    """What is wrong with a record, in one line."""
    first = error.errors()[0]
    key = ".".join(map(str, first["loc"])) or "line"
    found = first["input"]
    if isinstance(found, bytes):
        found = found.decode(errors="replace")
    return f"{key}: found {json.dumps(found, default=str)[:60]}, expected: {first['msg']}"
