"""The file of what exploits and honest candidates were found to be: a later run goes on from it.

A line a candidate, in the order in which they ended: its name and its evaluation. The evaluation
has the seed that unseen workloads were drawn from, so that what went wrong can be played again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernel_gym.executors.cache import Key
from kernel_gym.exploits import Exploit, Finding, Honest
from kernel_gym.lines import StoreError, append_line, read_lines, write_lines
from kernel_gym.records import Evaluation, Outcome, Record


class Line(Record):
    """One candidate and what it was found to be."""

    name: str
    evaluation: Evaluation


class FindingsFile:
    """What was found so far.

    Args:
        path: the file; made, with its folder, when absent.
        resume: whether to go on from what it holds.

    Raises:
        StoreError: it is there and not to be resumed, a line of it is malformed, or no file can be
            read or made there.
    """

    def __init__(self, path: Path, resume: bool = False) -> None:
        if path.exists() and not resume:
            raise StoreError(f"{path} is there already: give --resume, or another file")
        try:
            self._lines = read_lines(path, Line)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        except OSError as error:
            raise StoreError(f"{path}: expected a file to keep findings in: {error}") from error
        self._path = path

    def known(self, candidates: Sequence[Exploit | Honest], device: str) -> list[Finding]:
        """What was found of candidates on a device, in the order of the file.

        What was found of another source, by another protocol or on another device is not known of
        them, nor are failures of ours; such lines of theirs are removed.
        """
        by_name = {candidate.name: candidate for candidate in candidates}

        def stays(line: Line) -> bool:
            candidate = by_name.get(line.name)
            return candidate is None or _is_of(line.evaluation, candidate, device)

        self._lines = list(filter(stays, self._lines))
        write_lines(self._path, self._lines)
        own = (line for line in self._lines if line.name in by_name)
        return [Finding(by_name[line.name], line.evaluation) for line in own]

    def add(self, finding: Finding) -> None:
        """Keeps a finding; it is on disk when this returns."""
        append_line(self._path, Line(name=finding.candidate.name, evaluation=finding.evaluation))


def _is_of(found: Evaluation, candidate: Exploit | Honest, device: str) -> bool:
    wanted = Key.of(candidate.task.id, candidate.source, device, seed=0)
    key = Key(found.task, found.source_sha256, found.device, 0, found.protocol_version)
    return key == wanted and found.outcome is not Outcome.INFRA
