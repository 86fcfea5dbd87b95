"""The interface between the corpus and a judge that somebody else wrote.

An adapter is a module with `ADAPTER`, an object of this protocol. It writes a candidate in the
judge's form, names the command to run, and reads the verdict. The judge's checkout is read-only.
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Protocol, cast

from kernel_gym.errors import InputError
from kernel_gym.judges.corpus import Candidate
from kernel_gym.judges.verdicts import JudgeAnswer
from kernel_gym.tasks.inside import read_inside

NAMES = (
    "agent-kernel-arena",
    "fastkernels",
    "flashinfer-bench",
    "geak-eval",
    "kernelbench",
    "kernelbenchx",
    "kernelguard",
    "reference-kernels",
    "sol-execbench",
    "tritonbench",
)
"""The adapters of this package, each a module of `kernel_gym.judges.adapters`."""
MAX_RESULT_BYTES = 4 << 20
"""Most bytes of a file that a judge wrote."""


@dataclass(frozen=True)
class Reading:
    """The verdict as an adapter reads it.

    Attributes:
        answer: The answer.
        paid: The speedup that the judge states, if it states one.
        message: The judge's reason.
    """

    answer: JudgeAnswer
    paid: float | None = None
    message: str = ""


class JudgeAdapter(Protocol):
    """Writes candidates in the form of one judge and reads its verdicts.

    Attributes:
        name: The judge's name.
        repository: Where its checkout comes from.
        settings: The choices of the adapter and the judge's settings, in sentences for the page.
    """

    name: str
    repository: str
    settings: str

    def prepare(self, candidate: Candidate, checkout: Path, folder: Path) -> list[str]:
        """Writes the candidate and returns a Python script with its arguments.

        Args:
            candidate: The candidate, with its problem.
            checkout: The judge's checkout, which is read-only.
            folder: An empty folder, in which the script runs. Nothing else can be written.

        Raises:
            InputError: The checkout lacks a file, or the judge has no form for the candidate.
        """

    def read(self, folder: Path, output: str) -> Reading:
        """Returns the verdict.

        Args:
            folder: The folder after the run. All of its files may be hostile.
            output: The end of what the script printed.
        """


def load_adapter(name: str) -> JudgeAdapter:
    """Returns the adapter of a judge.

    Args:
        name: One of `NAMES`, or the path of a module with `ADAPTER`.

    Raises:
        InputError: There is none.
    """
    if name.endswith(".py"):
        module = _load_file(Path(name))
    elif name in NAMES:
        module = importlib.import_module(f"kernel_gym.judges.adapters.{name.replace('-', '_')}")
    else:
        raise InputError(f"judge: found {name!r}, expected {', '.join(NAMES)} or a file of Python")
    if not hasattr(module, "ADAPTER"):
        raise InputError(f"{name}: it defines no ADAPTER")
    return cast(JudgeAdapter, module.ADAPTER)


def need(checkout: Path, *files: str) -> None:
    """Raises InputError if a checkout lacks files that the adapter uses."""
    for file in files:
        if not (checkout / file).exists():
            raise InputError(f"{checkout.name}: found no {file}, expected a checkout that has it")


def result_text(folder: Path, file: str) -> str:
    """Returns a text that the judge wrote in its folder, or nothing if there is none to read."""
    try:
        return read_inside(folder, folder / file, MAX_RESULT_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _load_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("judge_adapter", path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise InputError(f"{path}: no such file of Python")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
