"""TritonBench's prediction files: rows with `instruction`, `predict` and `label`, as it reads them.

Its scripts for G match every label with its list and count them, and those for T look for the
functional description in the first column. So a file has all tasks of the list, with an empty
prediction where the run has none. The rows are read back, as published files are, by
:mod:`kernel_gym.imports.prediction_rows`.
"""

from __future__ import annotations

import json
from pathlib import Path

from kernel_gym.exchange.imported_replies import best_replies, checkout_of, suites_of
from kernel_gym.imports.readers.task_lists import listed_tasks
from kernel_gym.storage.json_lines import StoreError, write_whole
from kernel_gym.storage.run_store import RunStore

SUITES = ("tritonbench-g", "tritonbench-t")


def write_predictions(store: RunStore, path: Path) -> int:
    """Writes the best reply to each task of the suite, and returns their number.

    Args:
        store: A run on tasks of one of the suites.
        path: The file of JSON lines.

    Raises:
        StoreError: The run has no reply to such a task, or tasks of both suites.
        CheckoutError: A list of the suite cannot be read.
    """
    suites = [suite for suite in suites_of(store) if suite in SUITES]
    if len(suites) > 1:
        raise StoreError(f"{store.folder}: found tasks of {' and '.join(suites)}, expected of one")
    sources = {reply.file_name: reply.source for reply in best_replies(store, *SUITES)}
    rows = [
        {
            "instruction": task.instruction,
            "predict": sources.get(task.file, ""),
            "label": task.label,
            "file": task.file,
        }
        for task in listed_tasks(suites[0], checkout_of(suites[0]))
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, "".join(json.dumps(row) + "\n" for row in rows))
    return len(sources)
