"""A suite's own tests and tolerance as a second gate for a candidate, beside our judge.

The rule is the suite's: TritonBench compares what both print, GEAK-eval `result_gold`, KernelBenchX
`test_results` (with thresholds for its quantised tasks), and the ROCm suite has pytest files. The
gate can only refuse: what our judge refuses is never paid.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from kernel_gym.errors import InputError
from kernel_gym.imports.imported import changed_files, entry_of
from kernel_gym.imports.manifest import ManifestEntry, read_manifest
from kernel_gym.imports.readers.base import (
    CheckoutError,
    ConfinedRunner,
    UnsupportedTask,
    read_bytes,
    read_text,
)
from kernel_gym.imports.readers.halves import SEPARATOR, split_halves
from kernel_gym.imports.readers.of_halves import GEAK_G, KERNELBENCHX, G, HalvesReader, T
from kernel_gym.imports.readers.recording import SEED
from kernel_gym.imports.readers.rocm_bench import MAX_TESTS, STUBS
from kernel_gym.imports.recorded.problem import RecordedProblem
from kernel_gym.inert import inert_line
from kernel_gym.tasks.names import split_imported
from kernel_gym.tasks.registry import get_task

SECONDS = 100
"""Processor seconds of both runs of the tests."""
RULES = {
    G.suite: "printed",
    T.suite: "printed",
    GEAK_G.suite: "result_gold",
    KERNELBENCHX.suite: "test_results",
}
"""The value that each suite of files with two halves compares."""
_READERS: dict[str, HalvesReader] = {one.suite: one for one in (G, T, GEAK_G, KERNELBENCHX)}


@dataclass(frozen=True)
class SuiteVerdict:
    """The verdict of the suite's own tests on a candidate.

    Attributes:
        compiled: Whether it was built and called.
        correct: Whether the suite's tests take its answers.
        message: Why not, or empty.
        rule: What the suite compares, in a few words.
    """

    compiled: bool
    correct: bool
    message: str = ""
    rule: str = ""


def own_tests_verdict(name: str, source: str, bench: ConfinedRunner) -> SuiteVerdict:
    """Runs the suite's own tests on a candidate.

    Args:
        name: The id of an imported task of recorded calls.
        source: The candidate.
        bench: Runs code of the suite.

    Raises:
        InputError: The suite has no tests that compare, or the files have changed.
    """
    suite, _ = split_imported(name)
    entry, manifest = entry_of(name), read_manifest(suite)
    if changed := changed_files(manifest, entry):
        raise InputError(f"{name}: {changed[0]} has changed since it was imported: import it again")
    checkout = Path(manifest.checkout)
    files = {one: read_bytes(checkout, one) for one in entry.files}
    if suite in RULES:
        return _compared(suite, entry, checkout, files, source, bench)
    problem = get_task(name).problem
    splice = problem.origin.splice if isinstance(problem, RecordedProblem) else None
    if splice is None:
        raise InputError(f"{name}: its suite has no tests that can judge a candidate")
    pristine = read_text(checkout, str(entry.details["file"]))
    tests = split_halves(str(entry.details["file"]), pristine).tests
    files[str(entry.details["file"])] = f"{splice(source)}\n{SEPARATOR}\n{tests}".encode()
    return _tested(entry, files, bench)


def _compared(
    suite: str,
    entry: ManifestEntry,
    checkout: Path,
    files: dict[str, bytes],
    source: str,
    bench: ConfinedRunner,
) -> SuiteVerdict:
    """Compares the answers of both implementations to the tests of one file."""
    file, reader = str(entry.details["file"]), _READERS[suite]
    halves = split_halves(file, read_text(checkout, file))
    options = {
        "file": file,
        "pristine": halves.implementation,
        "candidate": source,
        "tests": halves.tests,
        "rule": RULES[suite],
        "thresholds": thresholds_of(reader, checkout, file),
        "path": [str(Path(file).parent), *reader.helpers],
        "seed": 0,
        "seconds": SECONDS,
    }
    try:
        answer = bench.run("own_tests", files, options)
    except UnsupportedTask as error:
        return SuiteVerdict(False, False, str(error), RULES[suite])
    called = answer.get("called") is True
    message = inert_line(str(answer.get("message")), 300)
    return SuiteVerdict(called, called and answer.get("right") is True, message, RULES[suite])


def _tested(entry: ManifestEntry, files: dict[str, bytes], bench: ConfinedRunner) -> SuiteVerdict:
    """Runs a sample of the tests of a pytest file. Its own assertions decide."""
    file = str(entry.details["file"])
    options: dict[str, object] = {
        "style": "pytest",
        "file": file,
        "functions": [],
        "most": MAX_TESTS,
        "path": [str(Path(file).parent)],
        "stubs": list(STUBS),
        "seconds": SECONDS,
        "seed": SEED,
    }
    try:
        answer = bench.run("record", files, options)
    except UnsupportedTask as error:
        return SuiteVerdict(False, False, str(error), "pytest")
    if answer.get("status") == 0 and answer.get("ended") == "well":
        return SuiteVerdict(True, True, rule="pytest")
    return SuiteVerdict(True, False, inert_line(str(answer.get("ended")), 300), "pytest")


def thresholds_of(reader: HalvesReader, checkout: Path, file: str) -> dict[str, float] | None:
    """Returns the thresholds that the suite's list states for a quantised task, or None."""
    if reader is not KERNELBENCHX:
        return None
    try:
        rows = json.loads(read_text(checkout, reader.instructions))
    except (ValueError, CheckoutError):
        return None
    short = file.rpartition("/")[2]
    own = [row for row in rows if str(row.get("file")).rpartition("/")[2] == short]
    stated = own[0].get("precision_thresholds") if own else None
    if not isinstance(stated, dict):
        return None
    return {str(key): float(value) for key, value in stated.items() if type(value) in (int, float)}
