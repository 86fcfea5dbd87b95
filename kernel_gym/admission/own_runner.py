"""The own runner of a task of AgentKernelArena as a second gate for a candidate.

The runner sees a pristine copy of the task's folder, in which the content of the editable file is
the candidate's. It runs confined as a reference worker, and the exit code of each of its commands
decides, as in the suite. It can only refuse: what our judge refuses is never paid.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_gym.analysis.suite_metrics import arena_score
from kernel_gym.errors import InputError
from kernel_gym.tasks.importers.imported import changed_files, entry_of
from kernel_gym.tasks.importers.manifest import ManifestEntry, read_manifest
from kernel_gym.tasks.importers.reader import ConfinedRunner, UnsupportedTask, read_bytes
from kernel_gym.tasks.importers.recording import SEED
from kernel_gym.tasks.names import split_imported

SECONDS = 100
"""Processor seconds of one command of a runner."""


@dataclass(frozen=True)
class OwnVerdict:
    """The verdict of the suite's own runner on a candidate.

    Attributes:
        compiled: Whether its command `compile` ended with 0.
        correct: Whether its command `correctness` did as well.
        message: How the command that failed ended, or empty.
    """

    compiled: bool
    correct: bool
    message: str = ""

    def score(self, speedup: float) -> float:
        """Returns the suite's score.

        Args:
            speedup: The mean of the ratios of workloads. Our clock measures them: the performance
                command repeats each kernel some ten thousand times, which no simulator can.
        """
        return arena_score(self.compiled, self.correct, speedup)


def own_verdict(name: str, source: str, bench: ConfinedRunner) -> OwnVerdict:
    """Runs the commands of a task's runner on a candidate.

    Args:
        name: The id of an imported task.
        source: The candidate.
        bench: Runs code of the suite.

    Raises:
        InputError: The task has no runner, or its files have changed.
    """
    suite, _ = split_imported(name)
    entry = entry_of(name)
    if suite != "agentkernelarena" or entry.details.get("style") != "runner":
        raise InputError(f"{name}: it has no runner of its own, expected a task of triton2triton")
    manifest = read_manifest(suite)
    if changed := changed_files(manifest, entry):
        raise InputError(f"{name}: {changed[0]} has changed since it was imported: import it again")
    checkout = Path(manifest.checkout)
    files = {one: read_bytes(checkout, one) for one in entry.files}
    files[str(entry.details["file"])] = source.encode()
    for command in ("compile", "correctness"):
        said = _ended(entry, command, files, bench)
        if said:
            return OwnVerdict(command != "compile", False, f"{command}: {said}")
    return OwnVerdict(True, True)


def _ended(
    entry: ManifestEntry, command: str, files: dict[str, bytes], bench: ConfinedRunner
) -> str:
    """Returns how a command of the runner failed, or an empty text."""
    details = entry.details
    options: dict[str, Any] = {
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
