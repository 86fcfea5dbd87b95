"""Names of problems, tasks and suites, read from the file system without importing problems.

The command line checks names here first. Importing a problem loads PyTorch, which takes seconds,
and a misspelt name should be reported at once.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterable
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import MappingProxyType

from kernel_gym.errors import InputError
from kernel_gym.tasks.near_names import near_names, unknown
from kernel_gym.tasks.problems import TASKS_PATH

PREFIX = "generated:"
"""The start of the name of a problem that is generated from a seed."""
KERNEL_FILES = MappingProxyType({"triton": "baseline.py", "hip": "baseline.hip"})
"""The file name of a problem's kernel, by language."""
GLUON_FILE = "gluon.py"
"""The file name of a problem's kernel in Gluon, which Triton tasks accept as well."""
GUIDES = Path(__file__).parent / "guides"
"""The folder of guides. Kernels in FlyDSL and TileLang lie there, one folder a language."""
ORIGINAL = "original.py"
"""The file of the code that a problem was traced from. Such a problem needs no start kernel."""
MODELS = MappingProxyType({"model/llama-decoder-layer": "triton2triton/llama_decoder_layer"})
"""Other names of tasks that are a part of a model: one submission holds all of its kernels."""
PROBLEMS = Path(__file__).parent / "problems"
SUITES = Path(__file__).parent / "suites"
RULES = SUITES / "rules.toml"
"""The file with all suites that are rules."""
OWN_PREFIX = "own-"
"""The head of the names of suites that hold one file of a user each."""
IMPORTS = "KERNEL_GYM_IMPORTS"
"""The environment variable that names the folder of imported suites."""


class Mode(StrEnum):
    """The start of a candidate and the language in which it is written."""

    TRITON2TRITON = "triton2triton"
    """Optimise a given Triton kernel."""
    TORCH2TRITON = "torch2triton"
    """Write a Triton kernel from the PyTorch reference."""
    INSTRUCTION2TRITON = "instruction2triton"
    """Write a Triton kernel from a description in words."""
    HIP2HIP = "hip2hip"
    """Optimise a given HIP kernel."""
    TORCH2HIP = "torch2hip"
    """Write a HIP kernel from the PyTorch reference."""
    FLYDSL2FLYDSL = "flydsl2flydsl"
    """Optimise a given FlyDSL kernel."""
    TORCH2FLYDSL = "torch2flydsl"
    """Write a FlyDSL kernel from the PyTorch reference."""
    TILELANG2TILELANG = "tilelang2tilelang"
    """Optimise a given TileLang kernel."""
    TORCH2TILELANG = "torch2tilelang"
    """Write a TileLang kernel from the PyTorch reference."""

    @property
    def written_in(self) -> str:
        """The language of a candidate: "triton", "hip", or a package with a language in Python."""
        return self.partition("2")[2]

    @property
    def has_start_kernel(self) -> bool:
        """Whether a candidate starts from a kernel, which also is its baseline."""
        return self.partition("2")[0] == self.written_in


FROM_TORCH = (Mode.TORCH2TRITON, Mode.TORCH2HIP)
"""The modes that need no start kernel."""
LANGUAGES = {m: m.written_in if m.written_in in KERNEL_FILES else "triton" for m in Mode}
"""The form of a candidate by mode: a Python module as in Triton, or a source in HIP."""
EXTRA_OF_MODE = MappingProxyType(
    {mode: mode.written_in for mode in Mode if mode.written_in not in KERNEL_FILES}
)
"""The language inside of Python that a mode requires, by the package that has it."""


class UnknownName(InputError, KeyError):
    """No problem, task or suite has this name; the message lists similar names."""

    def __init__(self, what: str, name: str, known: Iterable[str], hint: str = "") -> None:
        """Makes the message from the similar names, or from a hint if one is given."""
        names = sorted(known)
        self.what, self.name, self.hint = what, name, hint
        self.near = near_names(name, names)
        self.message = f"unknown {what} {name!r}; {hint}" if hint else unknown(what, name, names)
        super().__init__(self.message)

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        return (UnknownName, (self.what, self.name, self.near, self.hint))


def problem_folders() -> tuple[Path, ...]:
    """Returns the folders that hold problem folders. The package's own is the first."""
    outside = os.environ.get(TASKS_PATH, "").split(os.pathsep)
    return (PROBLEMS, *(Path(folder) for folder in outside if folder))


def names_in(folder: Path) -> set[str]:
    """Returns the names of the problems in a folder."""
    return {path.parent.name for path in folder.glob("*/problem.py")}


def problem_names() -> list[str]:
    """Returns the names of all problems in folders, sorted, without importing them."""
    return sorted(set().union(*map(names_in, problem_folders())))


def is_problem(name: str) -> bool:
    """Whether a folder of that name holds a problem. No other folder is read."""
    paths = (folder / name / "problem.py" for folder in problem_folders())
    return name.isidentifier() and any(path.is_file() for path in paths)


def task_ids() -> tuple[str, ...]:
    """Returns all task ids of problems in folders, by problem and then mode."""
    return _task_ids(problem_folders(), tuple(problem_names()))


@cache
def _task_ids(folders: tuple[Path, ...], names: tuple[str, ...]) -> tuple[str, ...]:
    homes = {name: folder / name for folder in reversed(folders) for name in names_in(folder)}
    return tuple(
        f"{mode}/{name}"
        for name in names
        for mode in Mode
        if _kernel_file(homes[name], mode).is_file()
        or (mode in FROM_TORCH and (homes[name] / ORIGINAL).is_file())
    )


def _kernel_file(home: Path, mode: Mode) -> Path:
    """Returns the path of the kernel that a problem needs to have a mode."""
    if mode in EXTRA_OF_MODE:
        return embedded_file(EXTRA_OF_MODE[mode], home.name)
    return home / KERNEL_FILES[LANGUAGES[mode]]


def embedded_file(language: str, problem: str) -> Path:
    """Returns the path of a problem's kernel in a language inside of Python. It may not exist."""
    return GUIDES / language / f"{problem}.py"


def imports_folder() -> Path:
    """Returns the folder with the manifests of imported suites, which may not exist."""
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return Path(os.environ.get(IMPORTS) or config / "kernel-gym" / "imports")


def imported_suites() -> list[str]:
    """Returns the names of the suites that were imported, sorted."""
    return sorted(path.stem for path in imports_folder().glob("*.json"))


def imported_ids(suite: str | None = None) -> tuple[str, ...]:
    """Returns the ids of imported tasks, of one suite or all, by suite and then name."""
    folder = imports_folder()
    suites = imported_suites() if suite is None else [suite]
    paths = [folder / f"{name}.json" for name in suites]
    stamps = tuple((path, path.stat().st_mtime_ns) for path in paths if path.is_file())
    return tuple(name for stamp in stamps for name in _names_in_manifest(*stamp))


@cache
def _names_in_manifest(path: Path, changed: int) -> tuple[str, ...]:
    try:
        tasks = json.loads(path.read_bytes())["tasks"]
        return tuple(f"{path.stem}/{name}" for name in sorted(tasks))
    except (ValueError, KeyError, TypeError):
        return ()  # reading the manifest itself reports what is wrong with it


def is_imported(name: str) -> bool:
    """Whether a name begins with the name of an imported suite, as ids of its tasks do."""
    suite, slash, _ = name.partition("/")
    return bool(slash) and suite.replace("-", "").isalnum() and suite in imported_suites()


def split_imported(name: str) -> tuple[str, str]:
    """Returns the suite and the name within it of an imported task's id."""
    suite, _, task = name.partition("/")
    return suite, task


def is_task(name: str) -> bool:
    """Whether a name has the form of a task id: `mode/problem`, a generated or an imported one."""
    mode, slash, _ = MODELS.get(name, name).partition("/")
    return name.startswith(PREFIX) or bool(slash and mode in set(Mode)) or is_imported(name)


def require_task(name: str) -> None:
    """Checks by its files that a task exists.

    Raises:
        UnknownName: There is no such task. The message lists similar names.
    """
    if is_imported(name):
        if name not in imported_ids():
            raise UnknownName("task", name, imported_ids(split_imported(name)[0]))
        return
    generated = name.partition("/")[2].startswith(PREFIX) or name.startswith(PREFIX)
    if not generated and MODELS.get(name, name) not in task_ids():
        raise UnknownName("task", name, (*task_ids(), *MODELS), imports_hint(name))


def imports_hint(name: str) -> str:
    """Returns what to do if a task or suite may have been imported into another folder, or "".

    Args:
        name: The id of a task, or the name of a suite with a user's own file.
    """
    suite, slash, _ = name.partition("/")
    if not (slash or name.startswith(OWN_PREFIX)) or not re.fullmatch(
        r"[a-z0-9]+(-[a-z0-9]+)*", suite
    ):
        return ""
    known = (*Mode, *(model.partition("/")[0] for model in MODELS))
    if not suite.startswith(OWN_PREFIX) and near_names(suite, known):
        return ""
    return f"no suite {suite!r} was imported here: set {IMPORTS} to the folder with {suite}.json"


def suite_names() -> list[str]:
    """Returns the names of the suites in the package, sorted."""
    files = [path.stem for path in SUITES.glob("*.toml") if path != RULES]
    rules = tomllib.loads(RULES.read_text(encoding="utf-8"))["suite"]
    return sorted([*files, *(entry["name"] for entry in rules)])


def require_suite(name: str) -> None:
    """Checks that a suite or task of that name exists. Names of TOML files are not checked.

    Raises:
        UnknownName: There is none. The message lists similar names.
    """
    if name.endswith(".toml"):
        return
    if is_task(name):
        require_task(name)
    elif name not in suite_names() and name not in imported_suites():
        known = suite_names() if not re.search(r"[/0-9]", name) else (*suite_names(), *task_ids())
        raise UnknownName("suite", name, (*known, *imported_suites()), imports_hint(name))
