"""A judge that is called by a script of the adapter, which writes the verdict to a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kernel_gym.judges.adapter import Reading, need, result_text
from kernel_gym.judges.corpus import Candidate
from kernel_gym.judges.verdicts import JudgeAnswer

VERDICT = "verdict.json"
"""An object with `accepted`, and, if the judge states them, `paid` and `why`."""
Write = Callable[[Candidate, Path, Path], None]


@dataclass(frozen=True)
class ScriptedJudge:
    """An adapter that consists of a script.

    Attributes:
        name: The judge's name.
        repository: Where its checkout comes from.
        settings: The choices of the adapter and the judge's settings.
        needed: Files of the checkout that the script uses.
        script: The text of the script; its argument is the checkout.
        write: Writes a candidate in the judge's form: candidate, checkout, folder.
        static: Whether it reads the source of candidates and runs nothing.
        install: The command that makes the checkout, if it is no clone of the repository.
    """

    name: str
    repository: str
    settings: str
    needed: tuple[str, ...]
    script: str
    write: Write
    static: bool = False
    install: str = ""

    def prepare(self, candidate: Candidate, checkout: Path, folder: Path) -> list[str]:
        """Writes the candidate and the script."""
        need(checkout, *self.needed)
        self.write(candidate, checkout, folder)
        (folder / "script.py").write_text(self.script, encoding="utf-8")
        return ["script.py", str(checkout)]

    def read(self, folder: Path, output: str) -> Reading:
        """Reads what the script wrote."""
        try:
            verdict = json.loads(result_text(folder, VERDICT))
            accepted, paid = verdict["accepted"], verdict.get("paid")
        except (ValueError, KeyError, TypeError, AttributeError):
            return Reading(JudgeAnswer.OPEN)
        answer = JudgeAnswer.ACCEPTED if accepted is True else JudgeAnswer.REFUSED
        is_number = isinstance(paid, int | float) and not isinstance(paid, bool)
        return Reading(answer, float(paid) if is_number else None, str(verdict.get("why", "")))
