"""Predictions in the formats of suites: the best reply for each imported task of a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from kernel_gym.episodes.history import best_turn
from kernel_gym.exchange.files import Row
from kernel_gym.imports.imported import entry_of
from kernel_gym.imports.manifest import read_manifest
from kernel_gym.imports.predictions import kernelbench_key
from kernel_gym.imports.readers.definitions import read_definition
from kernel_gym.imports.solutions import solution_json
from kernel_gym.storage.json_lines import StoreError
from kernel_gym.storage.run_store import RunStore
from kernel_gym.tasks import get_task


def _by_file(details: Mapping[str, object], instruction: str, source: str) -> Row:
    """GEAK-eval and KernelBenchX: `predict` and the file's name, which they look up."""
    return {"file": str(details["file"]).rpartition("/")[2], "predict": source}


def _by_instruction(details: Mapping[str, object], instruction: str, source: str) -> Row:
    """TritonBench: it finds the task by its instruction."""
    return {"instruction": instruction, **_by_file(details, instruction, source)}


def _by_path(details: Mapping[str, object], instruction: str, source: str) -> Row:
    """AgentKernelArena: the editable file of a task with its content."""
    return {"path": str(details["file"]), "content": source}


PREDICTION_FORMATS: dict[str, Callable[[Mapping[str, object], str, str], Row]] = {
    "geak-eval": _by_file,
    "kernelbenchx": _by_file,
    "tritonbench": _by_instruction,
    "aka": _by_path,
}
"""The formats by name."""


def prediction_rows(store: RunStore, form: str) -> list[Row]:
    """Returns one row for each imported task of a run: its best reply, or its last wrong one.

    Args:
        store: The run.
        form: A key of :data:`PREDICTION_FORMATS`.

    Raises:
        StoreError: The run has no imported task.
    """
    rows = []
    for name in store.config.tasks:
        task = get_task(name)
        if not task.problem.recorded:
            continue
        turns = [
            turn
            for sample in range(1, store.config.samples + 1)
            for turn in store.turns(name, sample)
        ]
        if not turns:
            continue
        source = store.source(best_turn(turns) or turns[-1])
        details = entry_of(name).details
        rows.append(PREDICTION_FORMATS[form](details, task.problem.definition, source))
    if not rows:
        raise StoreError(f"{store.folder}: found no reply to a task of an imported suite")
    return rows


KERNELBENCH = "kernelbench"
"""The format that is a folder: KernelBench's run folder."""


def write_run_folder(store: RunStore, folder: Path) -> int:
    """Writes the best reply of each sample as KernelBench names it, and returns their number.

    Args:
        store: The run.
        folder: The folder to write to.

    Raises:
        StoreError: The run has no reply to a task of KernelBench.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = 0
    for name in store.config.tasks:
        suite, _, task = name.partition("/")
        if not suite.startswith(KERNELBENCH):
            continue
        suffix = "hip" if suite.endswith("-hip") else "py"
        for sample in range(1, store.config.samples + 1):
            turns = store.turns(name, sample)
            if turns:
                file = f"{kernelbench_key(task)}_sample_{sample - 1}_kernel.{suffix}"
                source = store.source(best_turn(turns) or turns[-1])
                (folder / file).write_text(source, encoding="utf-8")
                written += 1
    if not written:
        raise StoreError(f"{store.folder}: found no reply to a task of KernelBench")
    return written


SOLUTIONS = ("sol-execbench", "flashinfer-bench")
"""The formats that are folders of solutions, named like their suites."""


def write_solutions(store: RunStore, form: str, folder: Path) -> int:
    """Writes the best reply for each definition as a solution, and returns their number.

    Args:
        store: The run.
        form: One of `SOLUTIONS`.
        folder: The folder to write to.

    Raises:
        StoreError: The run has no reply in Triton to a task of the suite.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = 0
    for name in store.config.tasks:
        suite, _, task = name.partition("/")
        turns = [
            turn
            for sample in range(1, store.config.samples + 1)
            for turn in (store.turns(name, sample) if suite == form else ())
        ]
        if turns:
            source = store.source(best_turn(turns) or turns[-1])
            checkout = Path(read_manifest(suite).checkout)
            definition = read_definition(checkout, next(iter(entry_of(name).files)))
            value = solution_json(definition, source, store.config.device, form == SOLUTIONS[1])
            path = folder / f"{task.replace('/', '.')}.json"
            path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
            written += 1
    if not written:
        raise StoreError(f"{store.folder}: found no reply to a task of {form}")
    return written
