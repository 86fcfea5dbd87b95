"""Reads the problems of GPU MODE: `task.yml`, `reference.py` and modules beside it.

Only checkouts under the MIT licence are read. Since 2026-06-09 another licence attaches conditions
to models that were trained on the problems.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from kernel_gym.imports.checkout import licence_of
from kernel_gym.imports.readers.base import (
    CheckoutError,
    ConfinedRunner,
    FoundTask,
    Unsupported,
    read_text,
)
from kernel_gym.imports.readers.halves import parsed
from kernel_gym.imports.readers.traced_reader import TracedReader
from kernel_gym.imports.readers.yaml_files import read_keys
from kernel_gym.tasks.names import Mode

ENTRY = "run"
SUBMISSION = "custom_kernel"
"""The function that a candidate may define in place of the entry, as upstream."""
LAST_MIT = "fec6e3c"
_DEFINED = re.compile(rf"^(def {SUBMISSION}\b|{SUBMISSION}\s*=)", re.MULTILINE)
_TRACED = "problem.py"
_REFERENCE = "reference.py"
Spec = dict[str, int | float | bool | str]


def _assembled(self: Any, source: str) -> str:
    """Returns a candidate's source with the code that calls its `custom_kernel`, if it has one."""
    return f"{source}\n{self.adapter}" if self.adapter and _DEFINED.search(source) else source


class ReferenceKernelsReader(TracedReader):
    """Reads one language of the problems."""

    entry = ENTRY
    source = "reference-kernels, github.com/gpu-mode/reference-kernels"
    code_file = 1
    assembled = staticmethod(_assembled)

    def detect(self, checkout: Path) -> bool:
        """Whether a folder of problems has a `task.yml`."""
        return any((checkout / "problems").glob("*/*/task.yml"))

    def entries(self, checkout: Path) -> Iterator[FoundTask | Unsupported]:
        """Yields one task for each `task.yml`."""
        licence = licence_of(checkout)
        for path in sorted((checkout / "problems").rglob("task.yml")):
            name = path.parent.relative_to(checkout / "problems").as_posix()
            category = name.partition("/")[0]
            if not licence.startswith("MIT"):
                reason = f"licence: found {licence[:60]!r}, expected MIT"
                yield Unsupported(name, category, f"{reason}: check out {LAST_MIT} or earlier")
                continue
            try:
                yield _entry(checkout, path.relative_to(checkout), name, category, self.mode)
            except CheckoutError as error:
                yield Unsupported(name, category, str(error))

    def prepare(self, checkout: Path, found: FoundTask, bench: ConfinedRunner) -> dict[str, object]:
        """Traces `ref_kernel` on what `generate_input` makes."""
        files = {PurePosixPath(file).name: read_text(checkout, file) for file in found.files[1:]}
        specs = found.details["specs"]
        files[_TRACED] = traced_text(specs, found.details["text"])
        return bench.trace(
            files,
            f"{_TRACED}:{ENTRY}",
            f"{_TRACED}:make_inputs",
            None,
            ENTRY,
            [{k: v for k, v in spec.items() if type(v) is int} for spec in specs],
            SUBMISSION,
        )


def _entry(
    checkout: Path, path: Path, name: str, category: str, mode: Mode
) -> FoundTask | Unsupported:
    task = read_keys(checkout, path.as_posix())
    if task.get("multi_gpu"):
        return Unsupported(name, category, "it needs several GPUs")
    folder = path.parent
    files = [path.as_posix(), *_modules(checkout, folder, task)]
    reference = parsed(files[1], read_text(checkout, files[1]))
    functions = {n.name: n for n in reference.body if isinstance(n, ast.FunctionDef)}
    for needed in ("generate_input", "ref_kernel"):
        if needed not in functions:
            return Unsupported(name, category, f"{files[1]}: found no function {needed!r}")
    taken = [argument.arg for argument in functions["generate_input"].args.args]
    specs = _specs(path.as_posix(), task, taken)
    text = str(task.get("description") or "")
    return FoundTask(name, category, mode, tuple(files), {"specs": specs, "text": text[:8000]})


def _modules(checkout: Path, folder: Path, task: Mapping[str, object]) -> list[str]:
    """Returns `reference.py` and the other modules that a task's list names, but no evaluator."""
    listed = task.get("files")
    rows = [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
    named = {str(row.get("name")): str(row.get("source")) for row in rows}
    if _REFERENCE not in named:
        raise CheckoutError(f"{folder}/task.yml: files: found no {_REFERENCE}, expected one")
    skipped = {"submission.py", "eval.py"}
    names = [_REFERENCE, *sorted(n for n in named if n.endswith(".py") and n not in skipped)]
    modules = []
    for name in dict.fromkeys(names):
        inside = (checkout / folder / named[name]).resolve()
        if not inside.is_relative_to(checkout.resolve()):
            raise CheckoutError(f"{folder}/task.yml: {named[name]}: leads out of the checkout")
        modules.append(inside.relative_to(checkout.resolve()).as_posix())
    return modules


def _specs(name: str, task: Mapping[str, Any], taken: list[str]) -> list[Spec]:
    """Returns the arguments of `generate_input` of all tests and benchmarks, without seeds.

    Only those are taken that differ in sizes alone; the others state another operation.
    """
    listed = [*(task.get("tests") or []), *(task.get("benchmarks") or [])]
    specs: list[Spec] = []
    for number, row in enumerate(listed, 1):
        if not isinstance(row, dict) or not all(isinstance(k, str) for k in row):
            raise CheckoutError(f"{name}: test {number}: found {type(row).__name__}, expected keys")
        values = {key: value for key, value in row.items() if key != "seed"}
        plain = all(isinstance(v, int | float | bool | str) for v in values.values())
        if not plain or {*values, "seed"} != {*taken, "seed"}:
            raise CheckoutError(
                f"{name}: test {number}: found {sorted(values)}, expected {sorted(taken)}"
            )
        specs.append(values)
    if not specs:
        raise CheckoutError(f"{name}: found no tests, expected keys of generate_input")
    return [spec for spec in specs if _kept(spec) == _kept(specs[0])]


def _kept(spec: Spec) -> Spec:
    return {key: value for key, value in spec.items() if type(value) is not int}


def traced_text(specs: list[Spec], description: str) -> str:
    """Returns a module with the sizes of the largest test, which calls the reference."""
    spec = max(specs, key=lambda one: math.prod(v for v in one.values() if type(v) is int))
    sizes = {key: value for key, value in spec.items() if type(value) is int}
    given = ", ".join(f"{k}={k if k in sizes else repr(v)}" for k, v in spec.items())
    lines = [
        "import reference as _reference",
        "from kernel_gym.imports.tracing.on_cpu import reserved, restored",
        "",
        *(f"{name} = {value}" for name, value in sizes.items()),
        "",
        "",
        f"def {ENTRY}(data):",
        f"    {description.strip()!r}",
        "    return _reference.ref_kernel(restored(data))",
        "",
        "",
        "def make_inputs():",
        f"    return {{'data': reserved(_reference.generate_input({given}, seed=0))}}",
        "",
    ]
    return "\n".join(lines)


TRITON = ReferenceKernelsReader("reference-kernels", Mode.TORCH2TRITON)
HIP = ReferenceKernelsReader("reference-kernels-hip", Mode.TORCH2HIP)
