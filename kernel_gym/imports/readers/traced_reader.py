"""The common part of readers that have modules traced: it makes the problems."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from kernel_gym.imports.readers.base import FoundTask, UnsupportedTask, read_text
from kernel_gym.imports.traced.loading import load_text
from kernel_gym.tasks.names import Mode
from kernel_gym.tasks.problem import Problem

ENTRY = "model_new"
"""The name of the function that a candidate may define in place of the class `ModelNew`."""
CLASS = re.compile(r"^class\s+ModelNew\b", re.MULTILINE)


def with_adapter(self: Any, source: str) -> str:
    """Returns a candidate's source with the code that calls its `ModelNew`, if it has one."""
    if self.adapter and CLASS.search(source):
        return f"{source}\n{self.adapter}"
    return source


@dataclass(frozen=True)
class TracedReader:
    """Reads one language of a suite.

    Attributes:
        suite: The name of the suite.
        mode: The mode of its tasks.
        entry: The name of the function that a candidate defines.
        source: The name and address of the suite.
        code_file: The place of the file that prompts show, among the files of a task.
        assembled: Makes the module of a candidate: `Problem.assembled` of the suite's problems.
    """

    suite: str
    mode: Mode
    entry: ClassVar[str] = ENTRY
    source: ClassVar[str]
    code_file: ClassVar[int] = 0
    assembled: ClassVar[Callable[..., str]] = staticmethod(with_adapter)

    def problem(self, checkout: Path, found: FoundTask, data: Mapping[str, object]) -> Problem:
        """Makes the problem from the text that tracing has left.

        Raises:
            UnsupportedTask: The text or the adapter is missing.
        """
        try:
            text, adapter = str(data["text"]), str(data["adapter"])
        except KeyError as error:
            raise UnsupportedTask(f"what was prepared lacks {error}: import it again") from None
        kind = type(load_text(found.name, text))
        facts = {
            "adapter": adapter,
            "name": f"{self.suite}/{found.name}",
            "suite": self.suite,
            "entry": self.entry,
            "code": read_text(checkout, found.files[self.code_file]),
            "source": self.source,
            "assembled": self.assembled,
        }
        return type(kind.__name__, (kind,), facts)()
