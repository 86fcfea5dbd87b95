"""Readers of TritonBench G and T, of G as GEAK-eval revised it, and of KernelBenchX."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_gym.imports.readers.base import (
    CheckoutError,
    ConfinedRunner,
    FoundTask,
    NoCallError,
    Unsupported,
    UnsupportedTask,
    read_bytes,
    read_text,
)
from kernel_gym.imports.readers.halves import (
    Halves,
    kernels_of,
    parsed,
    redefined_names,
    split_halves,
    tested_names,
)
from kernel_gym.imports.readers.recording import problem_of, record
from kernel_gym.imports.recorded.problem import Origin
from kernel_gym.tasks.names import Mode
from kernel_gym.tasks.problem import Problem

MAX_INSTRUCTION_CHARACTERS = 20_000


@dataclass(frozen=True)
class HalvesReader:
    """Reads suites of files with an implementation and its tests.

    Attributes:
        suite: The suite's name.
        folder: The folder of the files in a checkout.
        marks: Files or folders that mark a checkout.
        instructions: A JSON list with `file` and texts, or empty.
        mode: The mode of all tasks.
        helpers: Folders with modules that the tests import.
    """

    suite: str
    folder: str
    marks: tuple[str, ...]
    instructions: str
    mode: Mode
    helpers: tuple[str, ...] = ()
    listed_only: bool = False
    """Whether only files of the list are tasks."""

    def detect(self, checkout: Path) -> bool:
        """Whether the files that mark a checkout are there."""
        return all((checkout / mark).exists() for mark in (self.folder, *self.marks))

    def entries(self, checkout: Path) -> Iterator[FoundTask | Unsupported]:
        """Yields one task for each file."""
        known = self._listed(checkout)
        there = {path.name for path in (checkout / self.folder).rglob("*.py")}
        for name in sorted(known.keys() - there):
            reason = "missing: the suite's list names a file that is not there"
            yield Unsupported(name.removesuffix(".py"), "all", reason)
        for path in sorted((checkout / self.folder).rglob("*.py")):
            name = path.relative_to(checkout).as_posix()
            if path.name == "__init__.py":
                continue
            if self.listed_only and path.name not in known:
                continue
            facts = known.get(path.name, {})
            category = self._category(path, facts)
            yield self._entry(checkout, name, path.stem, category, facts)

    def prepare(self, checkout: Path, found: FoundTask, bench: ConfinedRunner) -> dict[str, object]:
        """Records the calls of its tests."""
        name = found.details["file"]
        halves = split_halves(name, read_text(checkout, name))
        files = {file: read_bytes(checkout, file) for file in found.files}
        options = {
            "style": "halves",
            "file": name,
            "line": halves.line,
            "functions": found.details["functions"],
            "path": [str(Path(name).parent), *self.helpers],
        }
        origin = self._origin(checkout, found, halves)
        try:
            return record(bench, origin, found.mode, files, options)
        except NoCallError:  # functions that draw their inputs themselves: their launches are calls
            kernels = kernels_of(parsed(name, halves.implementation))
            if found.mode is not Mode.TRITON2TRITON or not kernels:
                raise
            launches = {**options, "functions": kernels}
            return record(bench, origin, found.mode, files, launches)

    def problem(self, checkout: Path, found: FoundTask, data: Mapping[str, Any]) -> Problem:
        """Makes the problem of the recorded calls."""
        name = found.details["file"]
        halves = split_halves(name, read_text(checkout, name))
        used = sorted({t["call"]["function"].partition(".")[0] for t in data["templates"]})
        return problem_of(self._origin(checkout, found, halves, used), data)

    def _entry(
        self, checkout: Path, name: str, stem: str, category: str, facts: Mapping[str, object]
    ) -> FoundTask | Unsupported:
        try:
            halves = split_halves(name, read_text(checkout, name))
            trees = parsed(name, halves.implementation), parsed(name, halves.tests)
        except CheckoutError as error:
            return Unsupported(stem, category, f"unreadable: {error}")
        functions = tested_names(*trees)
        if not functions:
            return Unsupported(stem, category, "no call: its tests use nothing that it defines")
        if again := redefined_names(*trees):
            return Unsupported(stem, category, f"tests itself: its tests define {again[0]} again")
        files = (name, *self._helper_files(checkout))
        details = {"file": name, "functions": functions, "difficulty": facts.get("difficulty")}
        return FoundTask(stem, category, self.mode, files, details)

    def _helper_files(self, checkout: Path) -> Iterator[str]:
        for folder in self.helpers:
            for path in sorted((checkout / folder).glob("*.py")):
                yield path.relative_to(checkout).as_posix()

    def _category(self, path: Path, facts: Mapping[str, object]) -> str:
        if path.parent.name != Path(self.folder).name:
            return path.parent.name
        difficulty = facts.get("difficulty")
        return f"difficulty {difficulty}" if difficulty else "all"

    def _listed(self, checkout: Path) -> dict[str, dict[str, Any]]:
        """Returns the entry of each file in the suite's list. A list that is missing is empty."""
        if not self.instructions or not (checkout / self.instructions).is_file():
            return {}
        try:
            values = json.loads(read_text(checkout, self.instructions))
        except (ValueError, CheckoutError):
            return {}
        rows = [v for v in values if isinstance(v, dict)] if isinstance(values, list) else []
        return {str(row.get("file")).rpartition("/")[2]: row for row in rows}

    def _origin(
        self, checkout: Path, found: FoundTask, halves: Halves, used: list[str] | None = None
    ) -> Origin:
        facts = self._listed(checkout).get(Path(found.details["file"]).name, {})
        functions = tuple(used or ())
        if not used and not found.details["functions"]:
            raise UnsupportedTask("no call: its tests use nothing that it defines")
        return Origin(
            suite=self.suite,
            name=found.name,
            category=found.category,
            summary=f"{found.name} of {self.suite}",
            instruction=_instruction(facts),
            implementation=halves.implementation,
            functions=functions,
        )


def _instruction(facts: Mapping[str, object]) -> str:
    """The suite's own words, from the fields that its lists have."""
    parts = [
        facts.get(key)
        for key in (
            "comp_instru",
            "instruction",
            "simp_instru",
            "func_inputs",
            "description",
            "math",
        )
    ]
    text = next((str(part).strip() for part in parts[:3] if part), "")
    rest = [str(part).strip() for part in parts[3:] if part]
    return "\n\n".join([text, *rest] if text else rest)[:MAX_INSTRUCTION_CHARACTERS]


G = HalvesReader(
    suite="tritonbench-g",
    folder="data/TritonBench_G_v1",
    marks=("EVAL/eval_G",),
    instructions="data/TritonBench_G_v1.json",
    mode=Mode.TRITON2TRITON,
)
GEAK_G = HalvesReader(
    suite="geak-g",
    folder="geak_eval/data/TritonBench/data/TritonBench_G_v1",
    marks=("geak_eval/evaluators",),
    instructions=(
        "geak_eval/data/TritonBench/data/TritonBench_G_comp_alpac_v1_fixed_with_difficulty.json"
    ),
    mode=Mode.TRITON2TRITON,
)
KERNELBENCHX = HalvesReader(
    suite="kernelbenchx",
    folder="data/kernelbenchx",
    marks=("data/kernelbenchx_v1.json",),
    instructions="data/kernelbenchx_v1.json",
    mode=Mode.TORCH2TRITON,
    helpers=("utils",),
    listed_only=True,
)
T = HalvesReader(
    suite="tritonbench-t",
    folder="data/TritonBench_T_v1",
    marks=("EVAL/eval_T",),
    instructions="data/TritonBench_T_v1.jsonl",
    mode=Mode.TORCH2TRITON,
)
