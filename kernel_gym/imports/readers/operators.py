"""Reads SOL-ExecBench and flashinfer-bench, whose tasks are operators stated as data."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_gym.imports.readers.base import (
    CheckoutError,
    ConfinedRunner,
    FoundTask,
    Unsupported,
    UnsupportedTask,
)
from kernel_gym.imports.readers.definition_code import ENTRY, TRACED, adapted, tracing_files
from kernel_gym.imports.readers.definitions import (
    Definition,
    WorkloadRow,
    read_definition,
    read_workloads,
)
from kernel_gym.imports.traced.loading import load_text
from kernel_gym.tasks.inside import read_inside
from kernel_gym.tasks.names import Mode
from kernel_gym.tasks.problem import Problem

Place = tuple[str, Path, Path]
"""The name of a task, its definition and its workloads."""


@dataclass(frozen=True)
class OperatorReader:
    """Reads one language of a suite of operators.

    Attributes:
        suite: The name of the suite.
        mode: The mode of its tasks.
        origin: Where the suite comes from.
        places: Finds the files of all tasks in a checkout.
    """

    suite: str
    mode: Mode
    origin: str
    places: Callable[[Path], list[Place]]

    def detect(self, checkout: Path) -> bool:
        """Whether a definition is where the suite has them."""
        return bool(self.places(checkout))

    def entries(self, checkout: Path) -> Iterator[FoundTask | Unsupported]:
        """Yields one task for each definition."""
        for name, *paths in self.places(checkout):
            files = [path.relative_to(checkout).as_posix() for path in paths]
            category = name.rpartition("/")[0] or "all"
            try:
                definition = read_definition(checkout, files[0])
                rows = read_workloads(checkout, files[1], definition)
            except CheckoutError as error:
                yield Unsupported(name, category, str(error))
                continue
            category = definition.op_type or category
            blobs = sorted({i.path for row in rows for i in row.inputs.values() if i.path})
            details = {"definition": definition.name, "workloads": len(rows), "blobs": len(blobs)}
            yield FoundTask(name, category, self.mode, tuple(files), details)

    def prepare(self, checkout: Path, found: FoundTask, bench: ConfinedRunner) -> dict[str, object]:
        """Traces the reference at many sizes."""
        definition, rows = _read(checkout, found)
        row = _largest(definition, rows)
        try:
            files = tracing_files(checkout, definition, row)
        except CheckoutError as error:
            raise UnsupportedTask(str(error)) from None
        return bench.trace(
            files,
            f"{TRACED}:{ENTRY}",
            f"{TRACED}:make_inputs",
            None,
            ENTRY,
            [definition.sizes(one.axes) for one in rows],
        )

    def problem(self, checkout: Path, found: FoundTask, data: Mapping[str, object]) -> Problem:
        """Makes the problem from the text that tracing has left."""
        if "text" not in data:
            raise UnsupportedTask("what was prepared lacks its text: import it again")
        definition, rows = _read(checkout, found)
        kind = type(load_text(found.name, str(data["text"])))
        own: dict[str, object] = {
            "name": f"{self.suite}/{found.name}",
            "suite": self.suite,
            "entry": ENTRY,
            "code": definition.reference,
            "source": self.origin,
        }
        if self.mode is Mode.TORCH2TRITON:
            row = _largest(definition, rows)
            own["assembled"] = functools.partialmethod(_assembled, definition=definition, row=row)
        return type(kind.__name__, (kind,), own)()


def _assembled(self: Any, source: str, definition: Definition, row: WorkloadRow) -> str:
    """Returns a candidate's source with the code that calls its `run`."""
    return adapted(source, definition, row, self.args, [axis.name for axis in self.axes])


def _read(checkout: Path, found: FoundTask) -> tuple[Definition, list[WorkloadRow]]:
    definition = read_definition(checkout, found.files[0])
    return definition, read_workloads(checkout, found.files[1], definition)


def _largest(definition: Definition, rows: list[WorkloadRow]) -> WorkloadRow:
    """Returns the workload with the largest sizes."""
    return max(rows, key=lambda row: math.prod(definition.sizes(row.axes).values()))


def _folders(checkout: Path) -> list[Place]:
    """Folders with `definition.json` and `workload.jsonl`, as in SOL-ExecBench."""
    places = []
    for path in sorted(checkout.glob("**/definition.json")):
        parts = [p for p in path.parent.relative_to(checkout).parts if p not in _PLAIN]
        if (path.parent / "workload.jsonl").is_file() and parts:
            places.append(("/".join(parts), path, path.parent / "workload.jsonl"))
    return places


_PLAIN = frozenset({"examples", "data", "tests", "sol_execbench", "benchmark"})


def _trace_set(checkout: Path) -> list[Place]:
    """Files in `definitions/` and `workloads/`, as in flashinfer-bench."""
    places = []
    for folder in sorted(checkout.glob("**/definitions")):
        workloads = folder.parent / "workloads"
        for path in sorted(folder.rglob("*.json")) if workloads.is_dir() else ():
            inside = path.relative_to(folder).with_suffix(".jsonl")
            rows = [workloads / inside, *sorted(workloads.rglob(inside.name))]
            stated = next((candidate for candidate in rows if candidate.is_file()), rows[0])
            if _is_definition(checkout, path):
                places.append((inside.with_suffix("").as_posix(), path, stated))
    return places


def _is_definition(checkout: Path, path: Path) -> bool:
    try:
        return "reference" in json.loads(read_inside(checkout, path))
    except (OSError, ValueError, TypeError, RecursionError):
        return False


_SOL = "SOL-ExecBench, github.com/NVIDIA/SOL-ExecBench"
_FLASHINFER = "flashinfer-bench, github.com/flashinfer-ai/flashinfer-bench"
SOL_TRITON = OperatorReader("sol-execbench", Mode.TORCH2TRITON, _SOL, _folders)
SOL_HIP = OperatorReader("sol-execbench-hip", Mode.TORCH2HIP, _SOL, _folders)
FLASHINFER_TRITON = OperatorReader("flashinfer-bench", Mode.TORCH2TRITON, _FLASHINFER, _trace_set)
FLASHINFER_HIP = OperatorReader("flashinfer-bench-hip", Mode.TORCH2HIP, _FLASHINFER, _trace_set)
