"""Rows of predictions: the file that each is for, and the source in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kernel_gym.errors import InputError
from kernel_gym.imports.manifest import manifest_path, read_manifest
from kernel_gym.imports.readers.base import CheckoutError
from kernel_gym.imports.readers.halves import SEPARATOR
from kernel_gym.imports.readers.task_lists import (
    LISTED_SUITES,
    ListedTask,
    description_in,
    listed_tasks,
    without_end_tokens,
)
from kernel_gym.tasks.inside import read_inside


class PredictionError(InputError, ValueError):
    """A file of predictions cannot be used. The message names the row and the reason."""


def rows_of(path: Path, folder: Path) -> list[Any]:
    """Returns the values of JSON lines or of a JSON list.

    Raises:
        PredictionError: The file cannot be read, leads out of the folder, or is no JSON.
    """
    text = text_of(path, folder)
    try:
        if text.lstrip().startswith("["):
            return list(json.loads(text))
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    except (ValueError, RecursionError) as error:
        raise PredictionError(f"{path}: found no JSON: {error}") from error


def text_of(path: Path, folder: Path) -> str:
    """Returns the text of a file in a folder.

    Raises:
        PredictionError: It cannot be read, or leads out of the folder.
    """
    try:
        return read_inside(folder, path).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PredictionError(f"{path}: cannot be read ({error})") from error


def predictions_in(path: Path, rows: Sequence[object]) -> Iterator[tuple[str, str]]:
    """Yields the file and the source of each row.

    Rows have `predict` or `content`, and `file`, `filename` or `path`. Rows without a name of a
    file are those that TritonBench publishes: their task is found by `label`, or by the functional
    description in `instruction` or `prompt`, in the checkouts that were imported.

    Args:
        path: The file of the rows, for messages.
        rows: Their JSON values.

    Raises:
        PredictionError: A row is malformed, or fits no task of an imported suite.
    """
    published = _Published(path)
    for number, row in enumerate(rows, 1):
        known = row if isinstance(row, dict) else {}
        source = known.get("predict", known.get("content"))
        file = next((known[key] for key in ("file", "filename", "path") if key in known), None)
        named = isinstance(file, str) or "label" in known or published.words(known)
        if not isinstance(source, str) or not named:
            raise PredictionError(
                f"{path}: row {number}: found keys {sorted(known)[:6]}, expected file and predict, "
                "label and predict, or instruction and predict"
            )
        yield file if isinstance(file, str) else published.file_of(number, known), plain(source)


def plain(source: str) -> str:
    """Returns the first fenced block of a reply, or the whole text if there is none.

    What follows the line of 146 `#` that separates kernels from tests in these suites is left out.
    """
    source = without_end_tokens(source)
    for fence in ("```python\n", "```triton\n", "```\n"):
        _, opened, rest = source.partition(fence)
        if opened:
            source = rest.partition("```")[0]
            break
    return source.partition(f"\n{SEPARATOR}")[0]


def is_memory(rows: Sequence[object]) -> bool:
    """Whether the only value of a file is the memory of GEAK-agent: an entry for each file."""
    memory = rows[0] if len(rows) == 1 else None
    return (
        isinstance(memory, dict)
        and bool(memory)
        and all(isinstance(own, dict) and "perf_candidates" in own for own in memory.values())
    )


def kernels_in_memory(memory: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the file and each kernel that GEAK-agent remembers for it, the fastest first.

    A task without a right kernel has the last one that ran, if there is one.
    """
    for file, own in memory.items():
        kept = own["perf_candidates"] if isinstance(own["perf_candidates"], list) else []
        right = [one[0] for one in kept if isinstance(one, list) and one]
        others = [own.get("exe_candidate"), own.get("call_candidate")]
        sources = [text for text in (*right, *others) if isinstance(text, str) and text]
        for source in dict.fromkeys(sources):
            yield file, plain(source)


class _Published:
    """The tasks that published rows can be about, each taken once for a label, as in the suite."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._taken: set[tuple[str, str]] = set()
        self._lists: dict[str, list[ListedTask]] = {}

    @staticmethod
    def words(row: Mapping[str, object]) -> str:
        """The functional description in a row; "" if it has none."""
        text = row.get("instruction", row.get("prompt"))
        return description_in(text) if isinstance(text, str) else ""

    def file_of(self, number: int, row: Mapping[str, object]) -> str:
        """Returns the file of the task that a row is about."""
        label, words = str(row.get("label") or ""), self.words(row)
        label = without_end_tokens(label)
        reason = "no suite with such labels was imported"
        for suite in (one for one in LISTED_SUITES if manifest_path(one).is_file()):
            try:
                tasks = self._listed(suite)
            except CheckoutError as error:  # that of another suite may fit
                reason = str(error)
                continue
            reason = "it fits no task of the imported suites"
            fitting = [t.file for t in tasks if t.has_label(label)] if label.strip() else []
            fitting = fitting or [t.file for t in tasks if t.has_description(words)]
            left = [file for file in fitting if (suite, file) not in self._taken]
            if fitting:
                file = (left or fitting)[0]
                self._taken.add((suite, file))
                return file
        raise PredictionError(
            f"{self._path}: row {number}: found a label or an instruction and no file: {reason}"
        )

    def _listed(self, suite: str) -> list[ListedTask]:
        if suite not in self._lists:
            self._lists[suite] = listed_tasks(suite, Path(read_manifest(suite).checkout))
        return self._lists[suite]
