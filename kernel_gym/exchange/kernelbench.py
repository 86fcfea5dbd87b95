"""Run folders of KernelBench, and solutions of SOL-ExecBench and flashinfer-bench."""

from __future__ import annotations

import json
from pathlib import Path

from kernel_gym.episodes.history import best_turn
from kernel_gym.imports.imported import entry_of
from kernel_gym.imports.manifest import read_manifest
from kernel_gym.imports.predictions import kernelbench_key
from kernel_gym.imports.readers.definitions import read_definition
from kernel_gym.imports.solutions import solution_json
from kernel_gym.storage.json_lines import StoreError
from kernel_gym.storage.run_store import RunStore

KERNELBENCH = "kernelbench"
"""The name of the suite, with which names of its variants begin."""


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


def write_solutions(store: RunStore, folder: Path, form: str) -> int:
    """Writes the best reply for each definition as a solution, and returns their number.

    Args:
        store: The run.
        folder: The folder to write to.
        form: One of `SOLUTIONS`.

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
