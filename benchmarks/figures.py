"""Current figures of the project: a schema for `benchmarks/results/*.json`, and their loader.

Each file holds one subject. An entry is one figure with its unit, its command, the machine and the
commit. `benchmarks/machines.json` describes the machines. `python -m benchmarks table` prints them.
A figure that speaks of the tree says how large that was: a test fails when the counts are not
today's, except for figures of a GPU, which carry their date instead.
"""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar

from pydantic import Field, ValidationError, model_validator

from benchmarks.counts import CountName
from kernel_gym.errors import InputError
from kernel_gym.records import Record
from kernel_gym.storage.json_lines import first_line

R = TypeVar("R", bound=Record)

RESULTS = Path("benchmarks/results")
"""Folder of the results, relative to a checkout."""

Text = Annotated[str, Field(min_length=1, pattern=r"^\S(.*\S)?$")]
"""One line without spaces around it."""
Slug = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
Number = Annotated[int, Field(strict=True)] | Annotated[Decimal, Field(strict=True)]
"""A count, or a decimal that keeps its last zeros: 0.210 is not printed as 0.21."""


class BenchmarkError(InputError, ValueError):
    """A file of results cannot be used. The message names the file and the key."""


class FigureInterval(Record):
    """An interval around a value, or a range where there is no single value."""

    low: Number
    high: Number
    kind: Text
    """For instance `95 % interval, paired over tasks` or `range of 3 runs`."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low > self.high:
            raise ValueError("low is above high")
        return self


class Goal(Record):
    """The goal for a figure, and whether it is met."""

    text: Text
    met: bool


class Machine(Record):
    """Where a figure was measured."""

    name: Text
    """A few words, for tables."""
    description: Text
    """Processor or GPU, number of cores, and the versions of the libraries."""
    gpu: bool = False
    """Whether it has a GPU: its figures cannot be renewed on every machine."""


class BenchmarkEntry(Record):
    """One figure."""

    id: Slug
    """Unique in all files."""
    subject: Slug
    """The name of the file without `.json`."""
    metric: Text
    value: Number | None = None
    """None where only a range is known."""
    unit: Text
    interval: FigureInterval | None = None
    clock: Literal["measured", "modelled", "wall", "none"]
    """`measured`: time of a GPU or of a processor. `modelled`: time of the simulator's model.
    `wall`: elapsed time. `none`: a count, in which no time enters."""
    machine: Slug
    """A key of `machines.json`."""
    command: Text
    """A command or a Python expression that reproduces the figure."""
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{7,40}$")]
    """The code that ran."""
    date: datetime.date
    counts: dict[CountName, int]
    """Sizes of the tree that the figure speaks of; empty if it depends on none."""
    goal: Goal | None = None
    note: Text | None = None

    @model_validator(mode="after")
    def _has_a_figure(self) -> Self:
        if self.value is None and self.interval is None:
            raise ValueError("neither value nor interval is there")
        if self.value is None or self.interval is None:
            return self
        if not self.interval.low <= self.value <= self.interval.high:
            raise ValueError("value lies outside of its interval")
        return self


class Subject(Record):
    """One file: the figures of one subject."""

    title: Text
    entries: tuple[BenchmarkEntry, ...] = Field(min_length=1)


class Benchmarks(Record):
    """All figures: subjects by name, in the order of their names, and the machines by name."""

    subjects: dict[str, Subject]
    machines: dict[str, Machine]


class _Machines(Record):
    """The file of machines."""

    machines: dict[Slug, Machine]


def load_benchmarks(folder: Path = RESULTS) -> Benchmarks:
    """Reads every file of a folder, and `machines.json` beside the folder.

    Args:
        folder: the folder of results, `benchmarks/results` of a checkout.

    Raises:
        BenchmarkError: a file is missing or malformed, an entry names another subject than its
            file or an unknown machine, or two entries have the same id.
    """
    machines = _read(folder.parent / "machines.json", _Machines).machines
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise BenchmarkError(f"{folder}: no file of results is there")
    subjects = {path.stem: _read(path, Subject) for path in paths}
    _check_references(folder, subjects, machines)
    return Benchmarks(subjects=subjects, machines=machines)


def _read(path: Path, kind: type[R]) -> R:
    try:
        content = json.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
        return kind.model_validate(content)
    except OSError as error:
        raise BenchmarkError(f"{path}: {error.strerror}") from error
    except ValidationError as error:
        raise BenchmarkError(f"{path}: {first_line(error)}") from error
    except ValueError as error:
        raise BenchmarkError(f"{path}: {error}") from error


def _check_references(
    folder: Path, subjects: dict[str, Subject], machines: dict[str, Machine]
) -> None:
    """Raises BenchmarkError for a wrong subject, an unknown machine or an id that occurs twice."""
    files: dict[str, str] = {}
    for name, subject in subjects.items():
        for index, entry in enumerate(subject.entries):
            key = f"{folder / name}.json: entries.{index}"
            if entry.subject != name:
                raise BenchmarkError(f"{key}.subject: {entry.subject!r} is not the file's name")
            if entry.machine not in machines:
                raise BenchmarkError(f"{key}.machine: {entry.machine!r} is not in machines.json")
            if entry.id in files:
                raise BenchmarkError(f"{key}.id: {entry.id!r} is also in {files[entry.id]}.json")
            files[entry.id] = name
