"""GEAK-agent's memory and results of one iteration: `NAME_mem_I.json` and `NAME_I.jsonl`.

The agent continues from both files (`mem_file`, `result_path`, `start_iter`). Its memory must have
every task of its data set, so tasks without a reply have an empty one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kernel_gym.analysis.suite_metrics import rows_of, speedup_of_sums, was_called
from kernel_gym.episodes.history import passed
from kernel_gym.exchange.files import read_rows
from kernel_gym.exchange.imported_replies import checkout_of, suites_of
from kernel_gym.feedback import feedback
from kernel_gym.imports.imported import entry_of
from kernel_gym.imports.readers.task_lists import LISTED_SUITES, ListedTask, listed_tasks
from kernel_gym.storage.json_lines import StoreError
from kernel_gym.storage.run_records import TurnRecord
from kernel_gym.storage.run_store import REFLECTIONS, RunStore
from kernel_gym.tasks import get_task

NAME = "kernel_gym"
MAX_CANDIDATES = 5
"""Right kernels that the agent remembers, by its default `ancestor_num`."""
NO_MEMORY: Mapping[str, object] = {
    "call_err_msg": "None",
    "exe_err_msg": "None",
    "reflection": None,
    "oneshot": "",
    "perf_candidates": [],
    "perf_strategy": None,
    "call_candidate": None,
    "exe_candidate": None,
    "temp_strategy": None,
    "perf_debug_num": 0,
    "pass_call": False,
    "pass_exe": False,
    "pass_perf": False,
}
"""The memory of a task without a reply. The agent reads each of these keys."""


def write_memory(store: RunStore, folder: Path) -> int:
    """Writes the first sample of a run as the agent's state after its last iteration.

    Args:
        store: A run on tasks of TritonBench-G or GEAK-eval's version of it.
        folder: The folder to write to.

    Returns:
        The number of tasks with a memory of a reply.

    Raises:
        StoreError: The run has no task of one such suite.
    """
    suites = [suite for suite in suites_of(store) if suite in LISTED_SUITES]
    if len(suites) != 1:
        names = " and ".join(suites) or "none"
        raise StoreError(f"{store.folder}: found tasks of {names}, expected of one listed suite")
    (suite,) = suites
    reflections = _reflections(store)
    turns = {
        str(entry_of(name).details.get("file")).rpartition("/")[2]: store.turns(name, 1)
        for name in store.config.tasks
        if get_task(name).problem.suite == suite
    }
    tasks = listed_tasks(suite, checkout_of(suite))
    memories = {t.file: _memory(store, turns.get(t.file, []), reflections) for t in tasks}
    last = store.config.turns - 1
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{NAME}_mem_{last}.json").write_text(json.dumps(memories) + "\n", encoding="utf-8")
    lines = "".join(json.dumps(_state(t, memories[t.file])) + "\n" for t in tasks)
    (folder / f"{NAME}_{last}.jsonl").write_text(lines, encoding="utf-8")
    return sum(bool(own) for own in turns.values())


def _memory(
    store: RunStore, turns: Sequence[TurnRecord], reflections: Mapping[tuple[str, int, int], str]
) -> dict[str, object]:
    """The agent's memory after some turns on one task."""
    memory = dict(NO_MEMORY)
    if not turns:
        return memory
    last, right = turns[-1], [turn for turn in turns if passed(turn)]
    called = [turn for turn in turns if was_called(turn.evaluation)]
    text = feedback(get_task(last.task), last.evaluation)
    reflection = reflections.get((last.task, last.sample, last.turn))
    ranked = sorted(right, key=_speedup, reverse=True)[:MAX_CANDIDATES]
    failures = 0 if not right else len(turns) - 1 - turns.index(right[-1])
    return memory | {
        "call_err_msg": "None" if last in called else text,
        "exe_err_msg": "None" if last in right else text,
        "reflection": reflection,
        "perf_candidates": [
            [
                store.source(turn),
                _speedup(turn),
                0.0,
                reflections.get((turn.task, turn.sample, turn.turn)),
                None,
            ]
            for turn in ranked
        ],
        "call_candidate": store.source(called[-1]) if called else None,
        "exe_candidate": store.source(right[-1]) if right else None,
        "perf_debug_num": failures,
        "pass_call": bool(called),
        "pass_exe": bool(right),
        "pass_perf": bool(right),
    }


def _state(task: ListedTask, memory: Mapping[str, Any]) -> dict[str, object]:
    """The line of a task in the agent's results."""
    state: dict[str, object] = {
        "instruction": task.instruction,
        "label": task.label,
        "filename": task.file,
    }
    candidates = memory["perf_candidates"]
    solution = candidates[0][0] if candidates else memory["call_candidate"]
    if solution is not None:
        state |= {"predict": solution, "speedup": candidates[0][1] if candidates else 0.0}
    return state


def _speedup(turn: TurnRecord) -> float:
    return speedup_of_sums(rows_of(turn.evaluation))


def _reflections(store: RunStore) -> dict[tuple[str, int, int], str]:
    """The notes of a reflective agent by the turn that they are about."""
    path = store.folder / REFLECTIONS
    rows: list[Any] = [*read_rows(path)] if path.is_file() else []
    try:
        return {tuple(row["turn"]): str(row["reply"]["text"]) for row in rows}
    except (KeyError, TypeError) as error:
        raise StoreError(f"{path}: a line is no reflection: {error!r}") from None
