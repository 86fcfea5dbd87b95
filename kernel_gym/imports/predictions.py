"""Predictions of models in the formats of suites: files of rows, sources, and folders of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from kernel_gym.imports.imported import entry_of
from kernel_gym.imports.prediction_rows import (
    PredictionError,
    is_memory,
    kernels_in_memory,
    plain,
    predictions_in,
    rows_of,
    text_of,
)
from kernel_gym.imports.readers.arena import candidate_file
from kernel_gym.imports.readers.base import CheckoutError
from kernel_gym.imports.readers.yaml_files import read_keys
from kernel_gym.imports.solutions import is_solution, read_solution
from kernel_gym.tasks.names import split_imported

Sources = Mapping[str, list[str]]
"""Sources by the file that they are for, one for each sample."""
RESULT = "task_result.yaml"
"""The file that makes a folder a workspace of AgentKernelArena."""


def read_predictions(path: Path) -> dict[str, list[str]]:
    """Returns the sources of each file, a name or a path in the checkout: one for each sample.

    A file holds rows (:func:`~kernel_gym.imports.prediction_rows.predictions_in`), one source
    (`.py`), the memory of GEAK-agent, whose kernels for a task are samples, or one solution of
    SOL-ExecBench or flashinfer-bench. A folder is

    * a run folder of KernelBench, of which the first sample of a problem is taken;
    * a run folder of AgentKernelArena: the editable file of each workspace;
    * solutions, whose key is the name of the definition;
    * files of rows, as GEAK-eval takes one for each pass; files of results beside them are left
      out;
    * `.py` files, as KernelBenchX takes them, also in subfolders.

    Raises:
        PredictionError: The file is missing or malformed.
        SolutionError: A solution is malformed, or is not one Python file.
        CheckoutError: A list of the suite, by which rows are found, cannot be read.
        ManifestError: The manifest of that suite cannot be read.
    """
    read = _of_folder if path.is_dir() else _of_file
    sources: dict[str, list[str]] = {}
    for key, source in read(path):
        sources.setdefault(key, []).append(source)
    return sources


def prediction_for(sources: Sources, name: str, sample: int = 1) -> str | None:
    """Returns a sample of the source for an imported task, or None if there is none.

    Args:
        sources: What :func:`read_predictions` returned.
        name: The id of the task.
        sample: The number of the sample, from 1.
    """
    _, task = split_imported(name)
    details = entry_of(name).details
    file = str(details.get("file", task))
    parts, definition = file.split("/"), str(details.get("definition", task))
    ends = ("/".join(parts[i:]) for i in range(len(parts)))  # suites leave out leading folders
    keys = (*ends, task, f"{task}.py", kernelbench_key(task), definition)
    own = next((sources[key] for key in keys if key in sources), [])
    return own[sample - 1] if sample <= len(own) else None


_SAMPLE = re.compile(r"(level_\d_problem_\d+)_sample_(\d+)_kernel\.(?:py|hip)")


def kernelbench_key(task: str) -> str:
    """Returns `level_1_problem_23` for KernelBench's task `level1/23_Softmax`, else the task."""
    match = re.fullmatch(r"level(\d)/(\d+)_.*", task)
    return f"level_{match[1]}_problem_{match[2]}" if match else task


def _of_file(path: Path) -> Iterator[tuple[str, str]]:
    if path.suffix == ".py":
        yield path.name, plain(text_of(path, path.parent))
    elif path.suffix == ".json" and is_solution(path):
        yield read_solution(path)
    else:
        rows = rows_of(path, path.parent)
        memory = is_memory(rows)
        yield from kernels_in_memory(rows[0]) if memory else predictions_in(path, rows)


def _of_folder(path: Path) -> Iterator[tuple[str, str]]:
    kinds: tuple[Callable[[Path], Iterator[tuple[str, str]]], ...] = (
        _of_run_folder,
        _of_workspaces,
        _of_solutions,
        _of_rows,
        _of_sources,
    )
    for kind in kinds:
        if sources := list(kind(path)):
            return iter(sources)
    raise PredictionError(
        f"{path}: found no level_L_problem_P_sample_S_kernel.py, no workspace with {RESULT}, no "
        "solution, no file of rows and no .py file"
    )


def _of_run_folder(path: Path) -> Iterator[tuple[str, str]]:
    """Yields the first sample of each problem in a run folder of KernelBench."""
    samples: dict[str, tuple[int, Path]] = {}
    for file in sorted(path.iterdir()):
        match = _SAMPLE.fullmatch(file.name)
        if match and (match[1] not in samples or int(match[2]) < samples[match[1]][0]):
            samples[match[1]] = int(match[2]), file
    for key, (_, file) in samples.items():
        yield key, plain(text_of(file, path))


def _of_workspaces(path: Path) -> Iterator[tuple[str, str]]:
    """Yields the editable file of each workspace in a run folder of AgentKernelArena."""
    for result in sorted(path.glob(f"*/{RESULT}")):
        try:
            task = read_keys(path, result.relative_to(path).as_posix())["task_name"]
            source = candidate_file(result.parent)
        except (KeyError, CheckoutError) as error:
            raise PredictionError(f"{result}: found no task and its source ({error})") from error
        yield f"tasks/{task}/{source}", text_of(result.parent / source, path)


def _of_solutions(path: Path) -> Iterator[tuple[str, str]]:
    solutions = sorted(path.rglob("*.json"))
    if solutions and is_solution(solutions[0]):
        yield from (read_solution(one, path) for one in solutions)


def _of_rows(path: Path) -> Iterator[tuple[str, str]]:
    """Yields the rows of each file of a folder."""
    for file in sorted(one for one in path.iterdir() if one.suffix in (".json", ".jsonl")):
        rows = rows_of(file, path)
        first = rows[0] if rows else None
        if isinstance(first, dict) and {"predict", "content"} & first.keys():
            yield from predictions_in(file, rows)


def _of_sources(path: Path) -> Iterator[tuple[str, str]]:
    """Yields the `.py` files of a folder and of its subfolders."""
    for file in sorted(path.rglob("*.py")):
        yield file.name, plain(text_of(file, path))
