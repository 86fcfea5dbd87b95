"""Reads FastKernels: modules of models, with the shapes that were captured in runs of them.

A checkout must have the registry of shapes, `shape_registry.yaml`, which later commits left out. A
task is a module of the registry at the lowest two levels. Equal sizes in its shapes are one axis.
"""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kernel_gym.imports.readers import fastkernels_stated as stated
from kernel_gym.imports.readers.base import (
    CheckoutError,
    ConfinedRunner,
    FoundTask,
    Unsupported,
    read_text,
)
from kernel_gym.imports.readers.fastkernels_classes import (
    class_of,
    parameters_of,
    whole_numbers,
)
from kernel_gym.imports.readers.fastkernels_text import sizes_of, traced_text
from kernel_gym.imports.readers.halves import parsed
from kernel_gym.imports.readers.traced_reader import ENTRY, TracedReader
from kernel_gym.imports.readers.yaml_files import read_keys
from kernel_gym.imports.traced.graph import DTYPES
from kernel_gym.tasks.names import Mode

PACKAGE = "fastkernels"
LEVELS = ("L1", "L2")
_REGISTRY = f"{PACKAGE}/bench/kernels/benchmark_scenarios/small/shape_registry.yaml"
_TRACED = "problem.py"
MAX_SCENARIO_FILES = 60
Scenario = dict[str, Any]


class FastKernelsReader(TracedReader):
    """Reads one language of the modules."""

    source = "FastKernels, github.com/Snowflake-AI-Research/fastkernels"
    code_file = 1

    def detect(self, checkout: Path) -> bool:
        """Whether the registry of shapes is there."""
        return (checkout / _REGISTRY).is_file()

    def entries(self, checkout: Path) -> Iterator[FoundTask | Unsupported]:
        """Yields one task for each operation of the registry that is a kernel or a block."""
        for stem, scenarios in sorted(_registry(checkout).items()):
            module = _module(checkout, stem)
            if module is None:
                continue
            level = module.split("/")[-2]
            name = f"{level}/{stem}"
            try:
                yield _entry(checkout, module, stem, name, level, scenarios, self.mode)
            except CheckoutError as error:
                yield Unsupported(name, level, str(error))

    def prepare(self, checkout: Path, found: FoundTask, bench: ConfinedRunner) -> dict[str, Any]:
        """Traces the module at captured shapes and others."""
        files = {name: read_text(checkout, name) for name in found.files[1:]}
        scenario, target = found.details["scenario"], found.details["class"]
        files[_TRACED] = traced_text(scenario, found.files[1], target)
        return bench.trace(
            files,
            f"{_TRACED}:Model",
            f"{_TRACED}:make_inputs",
            f"{_TRACED}:make_init",
            ENTRY,
            [sizes_of(scenario)],
        )


@functools.lru_cache(maxsize=2)
def _registry(checkout: Path) -> dict[str, list[Scenario]]:
    return {
        str(stem): _scenarios(row.get("scenarios"))
        for stem, row in read_keys(checkout, _REGISTRY).items()
        if isinstance(row, dict)
    }


def _scenarios(rows: object) -> list[Scenario]:
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _module(checkout: Path, stem: str) -> str | None:
    """Returns the file of an operation: its PyTorch reference, or the baseline."""
    for kind in ("reference", "baseline"):
        for level in LEVELS:
            name = f"{PACKAGE}/tasks/{kind}/{level}/{stem}.py"
            if (checkout / name).is_file():
                return name
    return None


def _entry(
    checkout: Path,
    module: str,
    stem: str,
    name: str,
    level: str,
    scenarios: list[Scenario],
    mode: Mode,
) -> FoundTask | Unsupported:
    chosen = class_of(stem, _classes(checkout, module), scenarios)
    if chosen is None:
        return Unsupported(name, level, f"{module}: found no class like {stem!r}")
    usable = _usable(stem, chosen, scenarios)
    if not usable:
        return Unsupported(name, level, f"{_REGISTRY}: {stem}: found no inputs with shapes")
    scenario = max(usable, key=lambda one: math.prod(sizes_of(one).values()))
    if missing := sorted(parameters_of(chosen)[1] - scenario["init"].keys()):
        return Unsupported(name, level, f"the registry states no {missing[0]} of {chosen.name}")
    files = (_REGISTRY, *_closure(checkout, module))
    return FoundTask(name, level, mode, files, {"class": chosen.name, "scenario": scenario})


def captured_texts(checkout: Path, stem: str, most: int) -> list[str]:
    """Returns a module, as `traced_text` makes it, for each captured call of an operation.

    Args:
        checkout: The checkout.
        stem: The operation.
        most: Most elements of the inputs of a call; larger calls are left out.

    Returns:
        The modules, by the number of elements.

    Raises:
        CheckoutError: A file cannot be read.
    """
    module, scenarios = _module(checkout, stem), _registry(checkout).get(stem, [])
    chosen = class_of(stem, _classes(checkout, module), scenarios) if module else None
    if module is None or chosen is None:
        return []
    calls = [one for one in _usable(stem, chosen, scenarios) if _elements(one) <= most]
    whole = [one for one in calls if parameters_of(chosen)[1] <= one["init"].keys()]
    return [traced_text(one, module, chosen.name) for one in sorted(whole, key=_elements)]


def _classes(checkout: Path, module: str) -> dict[str, ast.ClassDef]:
    tree = parsed(module, read_text(checkout, module))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def _usable(stem: str, chosen: ast.ClassDef, scenarios: list[Scenario]) -> list[Scenario]:
    """Returns captured calls with shapes, with the parameters that the registry leaves out."""
    taken, needed = parameters_of(chosen)
    calls = []
    for one in filter(None, (_scenario(row, taken) for row in scenarios)):
        given = stated.LEFT_OUT.get(stem, {}) | one["init"]
        missing = (needed | stated.sized_by_images(taken)) - given.keys()
        given |= stated.from_shape(one["inputs"], missing)
        given |= {k: given[k][0] for k in whole_numbers(chosen) & given.keys() if _equal(given[k])}
        calls.append({**one, "init": given})
    return stated.prepared(stem, calls)


def _scenario(row: Scenario, taken: set[str]) -> Scenario | None:
    """Returns the arguments of the class and the inputs of a captured call, or None."""
    inputs, init = row.get("inputs"), row.get("init_args") or {}
    if not isinstance(inputs, dict) or not isinstance(init, dict):
        return None
    for one in inputs.values():
        if isinstance(one, dict) and not (
            isinstance(one.get("shape"), list) and one.get("dtype") in DTYPES
        ):
            return None
    if not any(isinstance(one, dict) for one in inputs.values()):
        return None
    alone = {k: v[0] if isinstance(v, list) and len(v) == 1 else v for k, v in init.items()}
    return {"init": {k: v for k, v in alone.items() if k in taken}, "inputs": inputs}


def _equal(value: object) -> bool:
    """Whether a value is a list of equal numbers, as modules keep the size of a patch."""
    return isinstance(value, list) and bool(value) and value.count(value[0]) == len(value)


def _elements(scenario: Scenario) -> int:
    """Returns how many elements the inputs of a captured call have."""
    tensors = (one for one in scenario["inputs"].values() if isinstance(one, dict))
    return sum(math.prod(one["shape"]) for one in tensors)


def _closure(checkout: Path, module: str) -> list[str]:
    """Returns a module and the modules of its package that it imports, directly or not."""
    files: list[str] = []
    waiting = [module]
    while waiting and len(files) < MAX_SCENARIO_FILES:
        name = waiting.pop(0)
        if name in files:
            continue
        files.append(name)
        parts = name.split("/")[:-1]
        waiting += [f"{'/'.join(parts[:n])}/__init__.py" for n in range(1, len(parts) + 1)]
        for node in ast.walk(parsed(name, read_text(checkout, name))):
            waiting += _imported(node, name)
        waiting = [one for one in waiting if (checkout / one).is_file()]
    return files


def _imported(node: ast.AST, file: str) -> list[str]:
    """Returns the files that a statement of a file may import, which need not exist."""
    names = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        above = file.split("/")[: -node.level] if node.level else []
        module = ".".join([*above, *filter(None, [node.module])])
        names = [module, *(f"{module}.{alias.name}" for alias in node.names)]
    paths = [n.replace(".", "/") for n in names if n.split(".")[0] == PACKAGE]
    return [file for path in paths for file in (f"{path}.py", f"{path}/__init__.py")]


TRITON = FastKernelsReader("fastkernels", Mode.TORCH2TRITON)
HIP = FastKernelsReader("fastkernels-hip", Mode.TORCH2HIP)
