"""A reader of the ROCm part of GEAK-eval: kernels that pytest files launch themselves."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path

from kernel_gym.imports.readers.base import (
    CheckoutError,
    ConfinedRunner,
    FoundTask,
    Unsupported,
    read_bytes,
    read_text,
)
from kernel_gym.imports.readers.halves import (
    autotuned_names,
    is_kernel,
    launchers_of,
    parsed,
    read_names,
    split_halves,
    with_functions,
)
from kernel_gym.imports.readers.recording import problem_of, record
from kernel_gym.imports.readers.splice import kernels_alone, splice
from kernel_gym.imports.recorded.problem import Origin
from kernel_gym.tasks.names import Mode
from kernel_gym.tasks.problem import Problem

MAX_TESTS = 12
"""Most tests of a file that run: some have hundreds."""
STUBS = ("geak_eval", "tb_eval", "performance_utils_pytest")
"""Modules for timing, which the recorder stands in for."""


class RocmReader:
    """Reads `ROCm_v1` of GEAK-eval."""

    suite = "geak-rocm"
    folder = "geak_eval/data/ROCm/data/ROCm_v1"

    def detect(self, checkout: Path) -> bool:
        """Whether the folder of tasks is there."""
        return (checkout / self.folder).is_dir()

    def entries(self, checkout: Path) -> Iterator[FoundTask | Unsupported]:
        """Yields one task for each file."""
        for path in sorted((checkout / self.folder).glob("*.py")):
            name = path.relative_to(checkout).as_posix()
            yield launched_entry(checkout, name, path.stem, "all")

    def prepare(self, checkout: Path, found: FoundTask, bench: ConfinedRunner) -> dict[str, object]:
        """Records the launches of a sample of its tests."""
        return record_launches(self.suite, checkout, found, bench, "")

    def problem(self, checkout: Path, found: FoundTask, data: Mapping[str, object]) -> Problem:
        """Makes the problem of the recorded launches."""
        return problem_of(launched_origin(self.suite, checkout, found, ""), data)


def launched_entry(checkout: Path, name: str, task: str, category: str) -> FoundTask | Unsupported:
    """Returns the task of a pytest file whose tests launch kernels of its upper half."""
    try:
        halves = split_halves(name, read_text(checkout, name))
    except CheckoutError as error:
        return Unsupported(task, category, f"unreadable: {error}")
    tree = parsed(name, halves.implementation)
    kernels = [n.name for n in tree.body if hasattr(n, "name") and is_kernel(n)]
    tests = parsed(name, halves.tests)
    used = read_names(tests)
    tested = [kernel for kernel in kernels if kernel in used]
    tuned = [kernel for kernel in tested if kernel in autotuned_names(tree)]
    if not tested:
        return Unsupported(task, category, "no call: its tests use nothing that it defines")
    hosts = launchers_of(tests, tuned)
    details = {"file": name, "functions": tested, "kernels": kernels, "hosts": hosts}
    folder = Path(name).parent
    helpers = tuple(
        path.relative_to(checkout).as_posix()
        for path in sorted((checkout / folder).glob("performance_utils*.py"))
    )
    return FoundTask(task, category, Mode.TRITON2TRITON, (name, *helpers), details)


def record_launches(
    suite: str, checkout: Path, found: FoundTask, bench: ConfinedRunner, instruction: str
) -> dict[str, object]:
    """Records the launches of a sample of the tests of a pytest file."""
    name = found.details["file"]
    options = {
        "style": "pytest",
        "file": name,
        "functions": found.details.get("hosts") or found.details["functions"],
        "most": MAX_TESTS,
        "path": [str(Path(name).parent)],
        "stubs": list(STUBS),
    }
    files = {file: read_bytes(checkout, file) for file in found.files}
    origin = launched_origin(suite, checkout, found, instruction)
    return record(bench, origin, found.mode, files, options)


def launched_origin(suite: str, checkout: Path, found: FoundTask, instruction: str) -> Origin:
    """Returns the origin of a task whose candidate is a set of kernels, spliced into its file."""
    name = found.details["file"]
    halves = split_halves(name, read_text(checkout, name))
    kernels = tuple(found.details["functions"])
    pristine = with_functions(halves, found.details.get("hosts", ()))
    return Origin(
        suite=suite,
        name=found.name,
        category=found.category,
        summary=f"{found.name} of {suite}",
        instruction=instruction,
        implementation=pristine,
        functions=kernels,
        own=kernels_alone(halves.implementation, kernels),
        splice=functools.partial(
            lambda pristine, names, source: splice(pristine, source, names),
            pristine,
            kernels,
        ),
    )
