"""A reader of AgentKernelArena, for both contracts of a task (`schema_version` 1 and 2)."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from kernel_gym.imports.readers.arena_modules import (
    INTO_FLYDSL,
    STYLE,
    module_entry,
    module_problem,
    prepare_module,
)
from kernel_gym.imports.readers.base import (
    CheckoutError,
    ConfinedRunner,
    FoundTask,
    Unsupported,
    UnsupportedTask,
    read_bytes,
    read_text,
)
from kernel_gym.imports.readers.halves import defined_names, parsed, read_names
from kernel_gym.imports.readers.recording import problem_of, record
from kernel_gym.imports.readers.rocm_bench import launched_entry, launched_origin, record_launches
from kernel_gym.imports.readers.yaml_files import read_keys
from kernel_gym.imports.recorded.problem import Origin
from kernel_gym.inert import inert_line
from kernel_gym.tasks.names import Mode
from kernel_gym.tasks.problem import Problem

MAX_FILE_BYTES = 8 << 20
"""Most bytes of one file of a task that is carried along."""
REASONS = {
    "flydsl2flydsl": "FlyDSL: its tests call launchers, not a function of tensors in one file",
    "image_kernel": "image: its sources are in a container image",
    "repository": "repository: it builds another repository",
}
"""Why categories are unsupported."""
HIP = ("hip2hip", "torch2hip")
"""Categories whose tasks have a PyTorch module and a HIP file."""
MAX_REASON = 120
"""Characters of a reason that a configuration states."""
SKIPPED = ("build", "perf", "__pycache__")


class ArenaReader:
    """Reads the tasks below `tasks/` by their `config.yaml`."""

    suite = "agentkernelarena"

    def detect(self, checkout: Path) -> bool:
        """Whether there are tasks and the evaluator's code."""
        return (checkout / "tasks").is_dir() and (checkout / "src").is_dir()

    def entries(self, checkout: Path) -> Iterator[FoundTask | Unsupported]:
        """Yields one task for each configuration."""
        for path in sorted((checkout / "tasks").rglob("config.yaml")):
            folder = path.parent.relative_to(checkout)
            task = folder.relative_to("tasks").as_posix()
            category = "/".join(task.split("/")[:2]) if task.count("/") > 1 else task.split("/")[0]
            try:
                config = read_keys(checkout, (folder / "config.yaml").as_posix())
                yield _entry(checkout, folder, task, category, config)
            except CheckoutError as error:
                yield Unsupported(task, category, f"unreadable: {error}")

    def prepare(self, checkout: Path, found: FoundTask, bench: ConfinedRunner) -> dict[str, object]:
        """Records the calls of its correctness tests, or traces its module.

        Raises:
            UnsupportedTask: It cannot be imported, or the suite has it for another GPU.
        """
        arch = found.details.get("required_arch", "")
        if not runs_on(arch, bench.device):
            raise UnsupportedTask(f"platform: it requires {arch}, the device is {bench.device}")
        if found.details["style"] == STYLE:
            return prepare_module(checkout, found, bench)
        if found.details["style"] == "pytest":
            return record_launches(self.suite, checkout, found, bench, found.details["instruction"])
        options = {
            "style": "runner",
            "file": found.details["runner"],
            "arguments": found.details["arguments"],
            "implementation": found.details["file"],
            "functions": found.details["functions"],
            "path": [found.details["folder"]],
            "stubs": ["aiter"],
        }
        files = {one: read_bytes(checkout, one) for one in found.files}
        return record(bench, self._origin(checkout, found), found.mode, files, options)

    def problem(self, checkout: Path, found: FoundTask, data: Mapping[str, Any]) -> Problem:
        """Makes the problem of the recorded calls, or of a module."""
        if found.details["style"] == STYLE:
            return module_problem(self.suite, checkout, found, data)
        if found.details["style"] == "pytest":
            text = found.details["instruction"]
            return problem_of(launched_origin(self.suite, checkout, found, text), data)
        used = sorted({t["call"]["function"].partition(".")[0] for t in data["templates"]})
        return problem_of(self._origin(checkout, found, tuple(used)), data)

    def _origin(self, checkout: Path, found: FoundTask, functions: tuple[str, ...] = ()) -> Origin:
        return Origin(
            suite=self.suite,
            name=found.name,
            category=found.category,
            summary=f"{found.name} of {self.suite}",
            instruction=found.details["instruction"],
            implementation=read_text(checkout, found.details["file"]),
            functions=functions,
        )


def runs_on(arch: str, device: str) -> bool:
    """Whether a device may be the GPU that a task requires. That of `rocm:N` is not known here.

    Args:
        arch: The architecture, such as `gfx950`; empty if the task states none.
        device: The name of the device.
    """
    backend, _, simulated = device.partition(":")
    return not arch or backend == "rocm" or (backend == "sim" and simulated == arch)


def candidate_file(folder: Path) -> str:
    """Returns the path of the file that a candidate replaces, in a folder with a `config.yaml`.

    Args:
        folder: The folder of a task, or a workspace, which is a copy of it.

    Raises:
        CheckoutError: There is no configuration, or it names no such file.
    """
    config = read_keys(folder, "config.yaml")
    source = _sources(config)[0]
    if not source:
        raise CheckoutError(f"{folder}: its configuration names no source")
    return source


def _sources(config: Mapping[str, object]) -> tuple[str, list[str], str]:
    """Source, correctness command and instruction of a task."""
    return _second(config) if config.get("schema_version") == 2 else _first(config)


def _entry(
    checkout: Path, folder: Path, task: str, category: str, config: Mapping[str, object]
) -> FoundTask | Unsupported:
    skipped, arch = _platform(config)
    requires = f"; it requires {arch}" if arch else ""
    if skipped:
        return Unsupported(task, category, f"platform: the suite skips it: {skipped}")
    if reason := REASONS.get(task.split("/")[0]):
        return Unsupported(task, category, reason + requires)
    entry = _supported(checkout, folder, task, category, config)
    if isinstance(entry, Unsupported):
        return entry
    return replace(entry, details={**entry.details, "required_arch": arch})


def _platform(config: Mapping[str, object]) -> tuple[str, str]:
    """Returns why the suite skips a task, and the GPU that it requires; empty for neither."""
    stated = config.get("platform_support")
    if not isinstance(stated, dict):
        return "", ""
    reason = inert_line(str(stated.get("skip_reason") or "no reason"), MAX_REASON)
    arch = inert_line(str(stated.get("required_arch") or "").strip(), MAX_REASON)
    return reason if stated.get("status") == "skip" else "", arch


def _supported(
    checkout: Path, folder: Path, task: str, category: str, config: Mapping[str, object]
) -> FoundTask | Unsupported:
    """Returns a task of a category that is imported."""
    source, command, text = _sources(config)
    if task.split("/")[0] in (*HIP, INTO_FLYDSL):
        return module_entry(checkout, folder, task, category, text)
    if not source or not command:
        return Unsupported(task, category, "configuration: it names no source or no command")
    name = (folder / source).as_posix()
    if command[0].endswith("pytest"):
        entry = launched_entry(checkout, name, task, category)
        if isinstance(entry, Unsupported):
            return entry
        details = {**entry.details, "style": "pytest", "instruction": text}
        return FoundTask(task, category, entry.mode, entry.files, details)
    runner = next((word for word in command if word.endswith(".py")), "")
    if not runner:
        return Unsupported(task, category, f"command: {shlex.join(command)[:80]} runs no script")
    arguments = command[command.index(runner) + 1 :]
    script = (folder / runner).as_posix()
    defined = defined_names(parsed(name, read_text(checkout, name)))
    used = read_names(parsed(script, read_text(checkout, script)))
    functions = [one for one in defined if one in used]
    if not functions:
        return Unsupported(task, category, "no call: its tests use nothing that it defines")
    details = {
        "style": "runner",
        "file": name,
        "runner": script,
        "arguments": arguments,
        "functions": functions,
        "folder": folder.as_posix(),
        "instruction": text,
    }
    files = tuple(task_files(checkout, folder))
    return FoundTask(task, category, Mode.TRITON2TRITON, files, details)


def _first(config: Mapping[str, object]) -> tuple[str, list[str], str]:
    """Source, correctness command and instruction of a task with `schema_version` 1."""
    sources, commands = config.get("source_file_path"), config.get("correctness_command")
    prompt = config.get("prompt")
    text = prompt.get("instructions") if isinstance(prompt, dict) else ""
    command = _words(str(commands[0]) if isinstance(commands, list) and commands else "")
    source = str(sources[0]) if isinstance(sources, list) and sources else ""
    if not source and command and command[0].endswith("pytest"):  # the tests hold the kernel
        source = next((word for word in command if word.endswith(".py")), "")
    return source, command, str(text or "")


def _second(config: Mapping[str, object]) -> tuple[str, list[str], str]:
    """The same of a task with `schema_version` 2."""
    candidate, evaluation = config.get("candidate"), config.get("evaluation")
    editable = candidate.get("editable") if isinstance(candidate, dict) else None
    first = editable[0] if isinstance(editable, list) and editable else ""
    source = first.get("path", "") if isinstance(first, dict) else first
    runner = evaluation.get("runner") if isinstance(evaluation, dict) else None
    words = [str(word) for word in runner] if isinstance(runner, list) else []
    text = str(config.get("description") or "")
    return str(source), [*words, "candidate", "correctness"] if words else [], text


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise CheckoutError(f"config.yaml: command {command[:60]!r}: {error}") from error


def task_files(checkout: Path, folder: Path) -> Iterator[str]:
    """Yields the files of a task by path in the checkout, without what its commands build."""
    for path in sorted((checkout / folder).rglob("*")):
        inside = path.relative_to(checkout / folder)
        kept = path.is_file() and not set(SKIPPED) & set(inside.parts)
        if kept and path.stat().st_size <= MAX_FILE_BYTES:
            yield path.relative_to(checkout).as_posix()
