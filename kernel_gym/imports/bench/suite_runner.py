"""The own runner of a task of AgentKernelArena as a second gate for a candidate.

The runner sees a pristine copy of the task's folder, in which the content of the editable file is
the candidate's. It runs confined as a reference worker, and the exit code of each of its commands
decides, as in the suite. It can only refuse: what our judge refuses is never paid.

Its performance command runs for the start kernel and for the candidate. The times that it reports
come from the candidate's own process: they make the suite's score, and nothing else.
"""

from __future__ import annotations

import ast
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_gym.analysis.suite_metrics import arena_score
from kernel_gym.devices import backend_of
from kernel_gym.errors import InputError
from kernel_gym.evaluator import Evaluator
from kernel_gym.imports.bench.arena_report import (
    REPORTS,
    SuiteSpeedup,
    TimedCase,
    parse_report,
    suite_speedup,
)
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
from kernel_gym.records import Outcome
from kernel_gym.tasks.names import split_imported
from kernel_gym.tasks.registry import get_task
from kernel_gym.tasks.workload import Split

SECONDS = 100
"""Processor seconds of one command of a runner."""
PERFORMANCE_SECONDS = 600
"""The same for its performance command on a real GPU."""
SLOW_SECONDS = 24 * 3600
"""The same on a simulated device, for those who ask for it."""
MARKS = ("# >>> AKA-GENERATED", "# <<< AKA-GENERATED <<<")
"""Begin and end of the part of a runner that the suite fills in before it runs."""
HELPERS = "src/tools/perf/vllm_cuda_graph_block.py"
"""The file that the suite fills in, from its first function."""
FIRST = "def _measure_cuda_event_fallback("
RULE = "exit codes of its runner"
"""The rule of the suite, in a few words."""
ROUNDS = ("WARMUP_ITERATIONS", "BENCHMARK_ITERATIONS")
"""Constants of a runner: how often a case is called at least while it is timed."""


@dataclass(frozen=True)
class SuiteTimes:
    """The times of the suite's own performance command, and its score.

    Attributes:
        speedup: The ratio by the suite's formula.
        cases: How many cases the candidate's report has.
        score: The suite's score with its own times.
        methods: How the cases of both sides were timed. More than one makes the ratio doubtful.
    """

    speedup: SuiteSpeedup
    cases: int
    score: float
    methods: tuple[str, ...]


@dataclass(frozen=True)
class _RunnerTask:
    """A task with a runner: its entry, and its pristine files."""

    entry: ManifestEntry
    files: dict[str, bytes]
    checkout: Path

    @property
    def takes_role(self) -> bool:
        """Whether its runner takes a role before the command."""
        return "candidate" in self.entry.details["arguments"]

    def overlaid(self, source: str) -> dict[str, bytes]:
        """Returns the files with a candidate in the place of the editable one."""
        return {**self.files, str(self.entry.details["file"]): source.encode()}


def suite_verdict(name: str, source: str, bench: ConfinedRunner) -> SuiteVerdict:
    """Runs the suite's own tests on a candidate: the commands of a task's runner, if it has one.

    Args:
        name: The id of an imported task.
        source: The candidate.
        bench: Runs code of the suite.

    Raises:
        InputError: The task has no tests that can judge a candidate, or its files have changed.
    """
    if not _has_runner(name):
        return own_tests_verdict(name, source, bench)
    task = _runner_task(name)
    for command in ("compile", "correctness"):
        message = _ended(task.entry, command, task.overlaid(source), bench)
        if message:
            return SuiteVerdict(command != "compile", False, f"{command}: {message}", RULE)
    return SuiteVerdict(True, True, rule=RULE)


def suite_times(name: str, source: str, bench: ConfinedRunner, slow: bool = False) -> SuiteTimes:
    """Runs the performance command of a task's runner on its start kernel and on a candidate.

    Args:
        name: The id of an imported task.
        source: A candidate that passes the other commands.
        bench: Runs code of the suite.
        slow: Whether to run it on a simulated device.

    Raises:
        InputError: The task has no runner, its files have changed, or the device is simulated and
            `slow` is not set: the message says how long a case takes there.
    """
    task = _runner_task(name)
    files = _with_helpers(task)
    twins = not backend_of(bench.device).full_size  # a suite's own sizes are slow there
    if twins and not slow:
        raise InputError(f"{name}: {_cost(task, bench)}")
    seconds = SLOW_SECONDS if twins else PERFORMANCE_SECONDS
    sides: list[tuple[TimedCase, ...]] = []
    problems = []
    for files_of_side in (files, {**files, str(task.entry.details["file"]): source.encode()}):
        answer, message = _run(task.entry, "performance", files_of_side, bench, seconds, timed=True)
        problems += [f"performance: {message}"] if message else []
        cases = () if message else parse_report(answer.get("reports"), answer.get("printed"))
        sides.append(cases)
    speedup = suite_speedup(*sides)
    if problems:
        speedup = SuiteSpeedup(0.0, speedup.base, speedup.best, problems[0])
    methods = tuple(sorted({case.method for side in sides for case in side if case.method}))
    if task.takes_role and len(methods) > 1 and not speedup.problem:
        text = f"timed in different ways: {', '.join(methods)}"
        speedup = SuiteSpeedup(0.0, speedup.base, speedup.best, text)
    ratio = speedup.scored(rebuilt=not task.takes_role)
    return SuiteTimes(speedup, len(sides[1]), arena_score(True, True, ratio), methods)


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


def kernel_gym_score(name: str, source: str, evaluator: Evaluator) -> tuple[str, float]:
    """Returns our judge's outcome, and the suite's score with the ratios that our clock measured.

    Args:
        name: The id of an imported task.
        source: The candidate.
        evaluator: Evaluates on the device.
    """
    evaluation = evaluator.evaluate(get_task(name), source)
    passed = evaluation.outcome is Outcome.PASSED
    rows = [one for one in evaluation.workloads if one.split is Split.TRAIN]
    ratios = [one.speedup for one in rows if one.speedup]
    mean = sum(ratios) / len(ratios) if ratios else 0.0
    compiled = evaluation.outcome not in (Outcome.COMPILE_ERROR, Outcome.SCREENED)
    return str(evaluation.outcome), arena_score(compiled, passed, mean)


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


def _cost(task: _RunnerTask, bench: ConfinedRunner) -> str:
    """Says how long the performance command takes on a simulated device, by a correctness run."""
    tree = ast.parse(task.files[str(task.entry.details["runner"])])
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name) and isinstance(node.value.value, int)
    }
    rounds = sum(constants.get(name, 0) for name in ROUNDS) or 1
    began = time.monotonic()
    message = _ended(task.entry, "correctness", task.files, bench)
    seconds = time.monotonic() - began
    once = f"one correctness run took {seconds:.0f} s here" + (f" ({message})" if message else "")
    return (
        f"{once}, and its performance command calls each case at least {rounds} times, twice over: "
        "for the start kernel and for the candidate. Times on a simulated device are modelled, so "
        "use a real GPU, or add --slow to run it anyway"
    )


def _ended(
    entry: ManifestEntry, command: str, files: dict[str, bytes], bench: ConfinedRunner
) -> str:
    """Returns how a command of the runner failed, or an empty text."""
    return _run(entry, command, files, bench, SECONDS)[1]


def _run(
    entry: ManifestEntry,
    command: str,
    files: dict[str, bytes],
    bench: ConfinedRunner,
    seconds: int,
    timed: bool = False,
) -> tuple[dict[str, Any], str]:
    """Runs a command of the runner. Returns the answer, and how it failed or an empty text."""
    details = entry.details
    options: dict[str, Any] = {
        "style": "runner",
        "file": details["runner"],
        "arguments": [command if a == "correctness" else a for a in details["arguments"]],
        "implementation": details["file"],
        "functions": [],
        "path": [details["folder"]],
        "stubs": ["aiter"],
        "seconds": seconds,
        "seed": SEED,
    }
    if timed:
        reports = [f"{details['folder']}/{name}" for name in REPORTS]
        options |= {"timed": True, "reports": reports}
    try:
        answer = bench.run("record", files, options)
    except UnsupportedTask as error:
        return {}, str(error)
    status = answer.get("status")
    if status == 0 and answer.get("ended") == "well":
        return answer, ""
    text = f"exit code {status}" if type(status) is int else f"ended by {answer.get('ended')!s:.80}"
    return answer, text
