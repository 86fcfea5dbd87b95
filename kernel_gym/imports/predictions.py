"""Predictions of models in the formats of suites: JSON lines or a JSON list."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernel_gym.errors import InputError
from kernel_gym.imports.imported import entry_of
from kernel_gym.imports.solutions import SolutionError, read_solution
from kernel_gym.tasks.inside import read_inside
from kernel_gym.tasks.names import split_imported


class PredictionError(InputError, ValueError):
    """A file of predictions cannot be used. The message names the row and the reason."""


UNUSABLE = (PredictionError, SolutionError)
"""The errors of `read_predictions`."""


def read_predictions(path: Path) -> dict[str, str]:
    """Returns sources by the file that they are for: a name, or a path in the checkout.

    Rows have `file` and `predict` (TritonBench, GEAK-eval, KernelBenchX), or `path` and `content`
    (AgentKernelArena). A folder is a run folder of KernelBench: it holds a file for each sample,
    of which the first one of a problem is taken. A folder of JSON files, or one such file, holds
    solutions of SOL-ExecBench or flashinfer-bench; their key is the name of the definition.

    Raises:
        PredictionError: The file is missing or malformed.
        SolutionError: A solution is malformed, or is not one Python file.
    """
    if path.is_dir():
        solutions = sorted(path.rglob("*.json")) if not any(path.glob("*_kernel.*")) else []
        if not solutions:
            return _of_run_folder(path)
        return dict(read_solution(one, path) for one in solutions)
    if path.suffix == ".json" and _is_solution(path):
        return dict([read_solution(path)])
    try:
        text = read_inside(path.parent, path).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PredictionError(f"{path}: cannot be read ({error})") from error
    sources = {}
    for number, row in enumerate(_rows(path, text), 1):
        known = row if isinstance(row, dict) else {}
        file = known.get("file", known.get("path"))
        source = known.get("predict", known.get("content"))
        if not isinstance(file, str) or not isinstance(source, str):
            raise PredictionError(
                f"{path}: row {number}: found keys {sorted(known)[:6]}, expected file and predict, "
                "or path and content"
            )
        sources[file] = _without_fence(source)
    return sources


def prediction_for(sources: Mapping[str, str], name: str) -> str | None:
    """Returns the source for an imported task, or None if there is none."""
    _, task = split_imported(name)
    details = entry_of(name).details
    file = str(details.get("file", task))
    short, definition = file.rpartition("/")[2], str(details.get("definition", task))
    keys = (file, short, task, f"{task}.py", kernelbench_key(task), definition)
    return next((sources[key] for key in keys if key in sources), None)


def _is_solution(path: Path) -> bool:
    try:
        value = json.loads(read_inside(path.parent, path))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(value, dict) and {"definition", "spec", "sources"} <= value.keys()


_SAMPLE = re.compile(r"(level_\d_problem_\d+)_sample_(\d+)_kernel\.(?:py|hip)")


def kernelbench_key(task: str) -> str:
    """Returns `level_1_problem_23` for KernelBench's task `level1/23_Softmax`, else the task."""
    match = re.fullmatch(r"level(\d)/(\d+)_.*", task)
    return f"level_{match[1]}_problem_{match[2]}" if match else task


def _of_run_folder(path: Path) -> dict[str, str]:
    """Returns the first sample of each problem in a run folder of KernelBench."""
    samples: dict[str, tuple[int, str]] = {}
    for file in sorted(path.iterdir()):
        match = _SAMPLE.fullmatch(file.name)
        if match and (match[1] not in samples or int(match[2]) < samples[match[1]][0]):
            try:
                text = read_inside(path, file).decode("utf-8", "replace")
            except OSError as error:
                raise PredictionError(f"{file}: cannot be read ({error.strerror})") from error
            samples[match[1]] = int(match[2]), _without_fence(text)
    if not samples:
        raise PredictionError(
            f"{path}: found no level_L_problem_P_sample_S_kernel.py, expected a run folder of "
            "KernelBench"
        )
    return {key: source for key, (_, source) in samples.items()}


def _rows(path: Path, text: str) -> list[Any]:
    try:
        if text.lstrip().startswith("["):
            return list(json.loads(text))
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except (ValueError, RecursionError) as error:
        raise PredictionError(f"{path}: found no JSON: {error}") from error


def _without_fence(source: str) -> str:
    """Returns the first fenced block of a reply, or the whole text if there is none."""
    _, opened, rest = source.partition("```python\n")
    return rest.partition("```")[0] if opened else source
