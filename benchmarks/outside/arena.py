"""The tasks of AgentKernelArena that ask for a kernel in FlyDSL, with their own harness.

Each task is one program: its compile command, then its correctness command. Its performance command
is a program of a second suite. A task runs in a copy of its folder, as the arena runs it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from benchmarks.outside.program import Program

CATEGORIES = ("flydsl2flydsl", "torch2flydsl", "triton2flydsl")
"""The categories whose target is FlyDSL."""
FLYDSL_KERNEL, TRITON_KERNEL, STUB = "its kernel in FlyDSL", "its kernel in Triton", "a stub"
KERNEL_OF_OURS = "our kernel in FlyDSL"
"""The kinds of kernels that the harness of a task judges."""
TO_WRITE = "torch2flydsl"
"""The category whose tasks can have a stub."""
SUITE, TIMES, WRITTEN = "arena-flydsl", "arena-flydsl-times", "arena-flydsl-written"
"""The suites: the verdicts on the tasks as they are, their times, verdicts on our kernels."""
CANDIDATES = Path(__file__).with_name("candidates")
"""Our kernels for tasks whose own `kernel.py` is a stub; a file serves several tasks."""
HARNESS = "test_kernel_harness.py"
NEWER_DEVICE = "sim:gfx950"
"""Where a task runs that requires this GPU: its harness skips itself, or fails, on all others."""
_FOR_NEWER = re.compile(r"""arch\w* != ['"]gfx950['"]|^\s*required_arch: gfx950$""", re.MULTILINE)
_VARIABLES = {"FLYDSL_RUNTIME_ENABLE_CACHE": "0"}


def task_folders(checkout: Path) -> list[Path]:
    """Returns the folders of the tasks whose target is FlyDSL, in their categories' order."""
    tasks = checkout / "tasks"
    return [
        file.parent
        for category in CATEGORIES
        for file in sorted((tasks / category).rglob("config.yaml"))
    ]


def arena_tasks(checkout: Path) -> Iterator[Program]:
    """Yields the tasks as they are: compiled, then judged by their own harness."""
    for folder in task_folders(checkout):
        yield _program(checkout, folder, SUITE, "correctness_command")


def arena_times(checkout: Path) -> Iterator[Program]:
    """Yields the performance command of each task."""
    for folder in task_folders(checkout):
        yield _program(checkout, folder, TIMES, "performance_command")


def arena_written(checkout: Path) -> Iterator[Program]:
    """Yields the tasks for which there is our kernel in place of the stub."""
    for folder in task_folders(checkout):
        candidate = written_candidate(folder.name)
        if folder.parent.name == TO_WRITE and candidate is not None:
            yield _program(checkout, folder, WRITTEN, "correctness_command", candidate)


def given_kernel(folder: Path) -> str:
    """Returns the kind of the kernel that a task gives: in FlyDSL, in Triton, or only a stub."""
    if not (folder / "kernel.py").exists():
        return TRITON_KERNEL
    text = (folder / "kernel.py").read_text(encoding="utf-8")
    return FLYDSL_KERNEL if "import flydsl" in text or "from flydsl" in text else STUB


def written_candidate(task: str) -> Path | None:
    """Returns our file that has the entry point of a task; None if there is none.

    Args:
        task: The name of its folder, such as `gelu_and_mul_kernel`.
    """
    entry = f"\nflydsl_{task.removesuffix('_kernel')} ="
    files = sorted(CANDIDATES.glob("*.py"))
    return next((file for file in files if entry in file.read_text(encoding="utf-8")), None)


def _program(
    checkout: Path, folder: Path, suite: str, command: str, candidate: Path | None = None
) -> Program:
    described = (folder / "config.yaml").read_text(encoding="utf-8")
    config = yaml.safe_load(described)
    harness = (folder / HARNESS).read_text(encoding="utf-8")
    needs_newer = _FOR_NEWER.search(described) or _FOR_NEWER.search(harness)
    aiter = checkout.parent / "aiter"
    return Program(
        suite,
        str(folder.relative_to(checkout / "tasks")),
        folder,
        _words(config, command),
        build=_words(config, "compile_command") if suite != TIMES else (),
        candidate=KERNEL_OF_OURS if candidate else given_kernel(folder),
        device=NEWER_DEVICE if needs_newer else "",
        is_copied=True,
        replaced={"kernel.py": candidate} if candidate else {},
        paths=(aiter, aiter / "aiter" / "jit" / "utils"),
        variables=_VARIABLES,
    )


def _words(config: dict[str, Any], key: str) -> tuple[str, ...]:
    """Returns a shell that runs the commands of a task one after the other."""
    return ("bash", "-c", " && ".join(config[key]))
