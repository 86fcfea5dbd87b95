"""A reader of one's own file: its tests are run, and the calls of its functions recorded.

The file has kernels in Triton, or builds an extension of PyTorch in HIP with `load_inline`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_gym.imports.readers.base import (
    CheckoutError,
    ConfinedRunner,
    FoundTask,
    Unsupported,
    read_bytes,
    read_text,
)
from kernel_gym.imports.readers.halves import defined_names, kernels_of, parsed, read_names
from kernel_gym.imports.readers.recording import problem_of, record
from kernel_gym.imports.recorded.problem import Origin
from kernel_gym.tasks.extension import is_extension
from kernel_gym.tasks.names import Mode
from kernel_gym.tasks.problem import Problem

MAX_FILES = 400
"""Most Python files beside the user's file that its tests may import."""
MAX_TESTS = 24
"""Most tests that run: a sample of them, the small sizes first."""
TEXTS_INSTEAD = (
    "a candidate is one file, so give load_inline the sources as texts, at the top of the module"
)
OPERATION_INSTEAD = (
    "write its operation as a PyTorch function and make a task of that, with your kernel in its "
    "baseline.hip: kernel-gym new FILE.py:FUNCTION --inputs FILE.py:make_inputs"
)
"""The cure for a program in HIP. Its launches say neither what they compute in fp64 nor which sizes
may vary together with their grid, and both are needed to judge another kernel.
"""
EXPECTED = 'expected a command such as "pytest test_x.py" or "python test_x.py"'


@dataclass(frozen=True)
class OwnReader:
    """Reads one file of a user.

    Attributes:
        suite: The name of its suite.
        file: The file with the kernels, relative to the folder; only needed to list the task.
        command: The command that runs its tests in the folder; only needed to list the task.
    """

    suite: str
    file: str = ""
    command: str = ""

    def detect(self, checkout: Path) -> bool:
        """Returns False: no folder is taken for one of these."""
        return False

    def entries(self, checkout: Path) -> Iterator[FoundTask | Unsupported]:
        """Yields the only task.

        Raises:
            CheckoutError: The command or a file cannot be used.
        """
        style, script, arguments = parse_command(self.command)
        name, category = Path(self.file).stem, "own"
        text = read_text(checkout, self.file)
        tree = parsed(self.file, text)
        used = read_names(parsed(script, read_text(checkout, script)))
        functions = [one for one in defined_names(tree) if one in used]
        mode = Mode.TRITON2TRITON
        if is_extension(text, "hip"):
            mode = Mode.HIP2HIP
        elif not kernels_of(tree):
            reason = f"no kernel: {self.file} has no @triton.jit function and no load_inline"
            if "cpp_extension" in text:
                reason = f"extension: {self.file} builds one of files; {TEXTS_INSTEAD}"
            yield Unsupported(name, category, reason)
            return
        if not functions:
            yield Unsupported(name, category, f"no call: {script} uses nothing of {self.file}")
            return
        details = {
            "file": self.file,
            "functions": functions,
            "style": style,
            "script": script,
            "arguments": arguments,
        }
        paths = sorted(checkout.rglob("*.py"))[:MAX_FILES]
        beside = (path.relative_to(checkout).as_posix() for path in paths)
        files = dict.fromkeys((self.file, script, *beside))
        yield FoundTask(name, category, mode, tuple(files), details)

    def prepare(self, checkout: Path, found: FoundTask, bench: ConfinedRunner) -> dict[str, object]:
        """Records the calls that the tests make."""
        details = found.details
        options = {
            "style": details["style"],
            "file": details["script"],
            "implementation": details["file"],
            "arguments": details["arguments"],
            "functions": details["functions"],
            "most": MAX_TESTS,
            "path": [".", str(Path(details["file"]).parent)],
        }
        files = {file: read_bytes(checkout, file) for file in found.files}
        return record(bench, self._origin(checkout, found), found.mode, files, options)

    def problem(self, checkout: Path, found: FoundTask, data: Mapping[str, Any]) -> Problem:
        """Makes the problem of the recorded calls."""
        used = sorted({t["call"]["function"].partition(".")[0] for t in data["templates"]})
        return problem_of(self._origin(checkout, found, tuple(used)), data)

    def _origin(self, checkout: Path, found: FoundTask, functions: tuple[str, ...] = ()) -> Origin:
        file = found.details["file"]
        return Origin(
            suite=self.suite,
            name=found.name,
            category=found.category,
            summary=f"the functions of {file} that {found.details['script']} calls",
            instruction="",
            implementation=read_text(checkout, file),
            functions=functions,
        )


def parse_command(command: str) -> tuple[str, str, list[str]]:
    """Returns the style of recording, the script and its arguments.

    Args:
        command: Such as `pytest test_x.py`, `python -m pytest test_x.py` or `python run.py --all`.

    Raises:
        CheckoutError: It has another form.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise CheckoutError(f"{command!r}: {error}; {EXPECTED}") from None
    scripts = [word for word in words if word.endswith(".py")]
    program = Path(words[0]).name if words else ""
    is_pytest = program == "pytest" or words[1:3] == ["-m", "pytest"]
    if not scripts or not (is_pytest or re.fullmatch(r"python[\d.]*", program)):
        raise CheckoutError(f"{command!r}: {EXPECTED}")
    script = scripts[0]
    arguments = [] if is_pytest else words[words.index(script) + 1 :]
    return "pytest" if is_pytest else "runner", Path(script).as_posix(), arguments
