"""Solutions of SOL-ExecBench and flashinfer-bench: a kernel with its entry point as one JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from kernel_gym.errors import InputError
from kernel_gym.imports.readers.definition_code import ENTRY, parameters_of
from kernel_gym.imports.readers.definitions import Definition
from kernel_gym.tasks.inside import read_inside

FILE = "kernel.py"
_ENTRY_POINT = re.compile(r"([\w./-]+)::([A-Za-z_]\w*)")


class SolutionError(InputError, ValueError):
    """A solution cannot be used. The message names the file and the reason."""


class SourceFile(BaseModel):
    """One file of a solution."""

    model_config = ConfigDict(frozen=True)

    path: str
    content: str


class SolutionSpec(BaseModel):
    """How a solution is built and called."""

    model_config = ConfigDict(frozen=True)

    entry_point: str
    destination_passing_style: bool = True


class Solution(BaseModel):
    """A solution: the name of its definition, its files and its entry point."""

    model_config = ConfigDict(frozen=True)

    name: str
    definition: str
    spec: SolutionSpec
    sources: tuple[SourceFile, ...]


def is_solution(path: Path) -> bool:
    """Whether a file is the JSON of a solution."""
    try:
        value = json.loads(read_inside(path.parent, path))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(value, dict) and {"definition", "spec", "sources"} <= value.keys()


def read_solution(path: Path, folder: Path | None = None) -> tuple[str, str]:
    """Returns the name of the definition that a solution is for, and its source.

    Args:
        path: The file.
        folder: The folder that a link must not lead out of; by default that of the file.

    Raises:
        SolutionError: It is malformed, or is not one Python file.
    """
    try:
        solution = Solution.model_validate_json(read_inside(folder or path.parent, path))
    except OSError as error:
        raise SolutionError(f"{path}: cannot be read ({error.strerror})") from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise SolutionError(f"{path}: key {key!r}: {first['msg']}") from None
    match = _ENTRY_POINT.fullmatch(solution.spec.entry_point)
    if match is None:
        raise SolutionError(
            f"{path}: found the entry point {solution.spec.entry_point[:60]!r}, expected "
            "FILE.py::FUNCTION"
        )
    file, function = match.groups()
    if not file.endswith(".py") or len(solution.sources) != 1:
        names = ", ".join(one.path for one in solution.sources)[:120]
        raise SolutionError(
            f"{path}: found {names} with the entry point {file}, expected one Python file: CUDA "
            "and packages of several files are not taken; write the kernel in Triton, in one file"
        )
    source = solution.sources[0]
    if source.path != file:
        raise SolutionError(f"{path}: found the file {source.path!r}, expected {file!r}")
    alias = "" if function == ENTRY else f"\n\n{ENTRY} = {function}\n"
    return solution.definition, source.content + alias


def solution_json(
    definition: Definition, source: str, device: str, single: bool
) -> dict[str, object]:
    """Returns a solution as their JSON.

    Args:
        definition: The operator.
        source: The text of a kernel that passed here. A `run` that takes tensors only gets the
            scalars of the definition as well.
        device: The name of the hardware.
        single: Whether the key is `language` (flashinfer-bench) and not `languages`.
    """
    parameters = parameters_of(source) or []
    passing = bool(parameters) and parameters[-1] in definition.outputs
    scalars = definition.scalars
    if scalars and not passing and len(parameters) == len(definition.tensors):
        given = ", ".join(definition.tensors)
        source += (
            f"\n\n_run_tensors = {ENTRY}\n\n\ndef {ENTRY}({', '.join(definition.inputs)}):\n"
            f"    return _run_tensors({given})\n"
        )
    return {
        "name": f"kernel-gym-{definition.name}",
        "definition": definition.name,
        "author": "kernel-gym",
        "spec": {
            **({"language": "triton"} if single else {"languages": ["triton"]}),
            "target_hardware": [device],
            "entry_point": f"{FILE}::{ENTRY}",
            "dependencies": ["torch", "triton"],
            "destination_passing_style": passing,
        },
        "sources": [{"path": FILE, "content": source}],
    }
