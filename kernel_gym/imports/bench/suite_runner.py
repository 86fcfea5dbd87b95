"""The own runner of a task of AgentKernelArena as a second gate for a candidate.

The runner sees a pristine copy of the task's folder, in which the content of the editable file is
the candidate's. It runs confined as a reference worker, and the exit code of each of its commands
decides, as in the suite. It can only refuse: what our judge refuses is never paid.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kernel_gym.errors import InputError
from kernel_gym.imports.bench.fastkernels_tests import SUITE, module_verdict
from kernel_gym.imports.bench.own_tests import SuiteVerdict, own_tests_verdict
from kernel_gym.imports.imported import changed_files, entry_of
from kernel_gym.imports.manifest import ManifestEntry, read_manifest
from kernel_gym.imports.readers.arena import task_files
from kernel_gym.imports.readers.base import (
    CheckoutError,
    ConfinedRunner,
    UnsupportedTask,
    read_bytes,
    read_text,
)
from kernel_gym.imports.readers.recording import SEED
from kernel_gym.tasks.names import split_imported

SECONDS = 100
"""Processor seconds of one command of a runner."""
MARKS = ("# >>> AKA-GENERATED", "# <<< AKA-GENERATED <<<")
"""Begin and end of the part of a runner that the suite fills in before it runs."""
HELPERS = "src/tools/perf/vllm_cuda_graph_block.py"
"""The file that the suite fills in, from its first function."""
FIRST = "def _measure_cuda_event_fallback("
RULE = "exit codes of its runner"
"""The rule of the suite, in a few words."""
REPORTS = (
    "build/performance_report.json",
    "performance_report.json",
    "build/perf_report.json",
    "perf_report.json",
    "perf/benchmark_results.json",
)
"""Where a performance command of the suite leaves its report."""


@dataclass(frozen=True)
class _RunnerTask:
    """A task with a runner: its entry, and its pristine files."""

    entry: ManifestEntry
    files: dict[str, bytes]
    checkout: Path

    def overlaid(self, source: str) -> dict[str, bytes]:
        """Returns the files with a candidate in the place of the editable one."""
        return {**self.files, str(self.entry.details["file"]): source.encode()}


def suite_verdict(name: str, source: str, bench: ConfinedRunner) -> SuiteVerdict:
    """Runs the suite's own tests on a candidate: the commands of a task's runner, if it has one.

    FastKernels has no tests of a task: its rule is applied at the calls that it captured.

    Args:
        name: The id of an imported task.
        source: The candidate.
        bench: Runs code of the suite.

    Raises:
        InputError: The task has no tests that can judge a candidate, or its files have changed.
    """
    if split_imported(name)[0] == SUITE:
        return module_verdict(name, source, bench)
    if not _has_runner(name):
        return own_tests_verdict(name, source, bench)
    task = _runner_task(name)
    for command in ("compile", "correctness"):
        message = _ended(task.entry, command, task.overlaid(source), bench)
        if message:
            return SuiteVerdict(command != "compile", False, f"{command}: {message}", RULE)
    return SuiteVerdict(True, True, rule=RULE)


def prepared_files(name: str, folder: str) -> dict[str, bytes]:
    """Returns the files of a task as the suite prepares a workspace, by path in the checkout.

    Args:
        name: The id of an imported task of the arena.
        folder: The folder of the task in the checkout.

    Raises:
        InputError: Its files have changed, or its timing helpers do not fit.
        CheckoutError: A file cannot be read.
    """
    if _has_runner(name):
        return _with_helpers(_runner_task(name))
    checkout = Path(read_manifest(split_imported(name)[0]).checkout)
    return {one: read_bytes(checkout, one) for one in task_files(checkout, Path(folder))}


def _has_runner(name: str) -> bool:
    """Whether a task is one of the arena with a runner of its own."""
    suite, _ = split_imported(name)
    return suite == "agentkernelarena" and entry_of(name).details.get("style") == "runner"


def _runner_task(name: str) -> _RunnerTask:
    suite, _ = split_imported(name)
    entry = entry_of(name)
    if not _has_runner(name):
        raise InputError(f"{name}: it has no runner of its own, expected a task of triton2triton")
    manifest = read_manifest(suite)
    if changed := changed_files(manifest, entry):
        raise InputError(f"{name}: {changed[0]} has changed since it was imported: import it again")
    checkout = Path(manifest.checkout)
    files = {one: read_bytes(checkout, one) for one in entry.files}
    return _RunnerTask(entry, files, checkout)


def _with_helpers(task: _RunnerTask) -> dict[str, bytes]:
    """Returns the files as the suite prepares them: with its timing helpers, without old reports.

    Raises:
        InputError: The checkout has no such helpers, or the runner has half of the marks.
    """
    folder, runner = task.entry.details["folder"], str(task.entry.details["runner"])
    old = {f"{folder}/{name}" for name in REPORTS}
    files = {name: content for name, content in task.files.items() if name not in old}
    text = files[runner].decode("utf-8", "replace")
    begin, end = MARKS
    if begin not in text and end not in text:
        return files
    before, _, behind = text.partition(begin)
    _, mark, after = behind.partition(end)
    try:
        helpers = read_text(task.checkout, HELPERS)
    except CheckoutError as error:
        raise InputError(f"its timing helpers: {error}") from error
    if not mark or FIRST not in helpers:
        raise InputError(f"{runner}: its timing helpers do not fit {HELPERS}")
    block = helpers[helpers.index(FIRST) :]
    files[runner] = f"{before}{begin}\n{block}{end}{after}".encode()
    return files


def _ended(
    entry: ManifestEntry, command: str, files: dict[str, bytes], bench: ConfinedRunner
) -> str:
    """Runs a command of the runner. Returns how it failed, or an empty text."""
    details = entry.details
    options: dict[str, object] = {
        "style": "runner",
        "file": details["runner"],
        "arguments": [command if a == "correctness" else a for a in details["arguments"]],
        "implementation": details["file"],
        "functions": [],
        "path": [details["folder"]],
        "stubs": ["aiter"],
        "seconds": SECONDS,
        "seed": SEED,
    }
    try:
        answer = bench.run("record", files, options)
    except UnsupportedTask as error:
        return str(error)
    status = answer.get("status")
    if status == 0 and answer.get("ended") == "well":
        return ""
    return f"exit code {status}" if type(status) is int else f"ended by {answer.get('ended')!s:.80}"
