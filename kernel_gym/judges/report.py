"""Error rates of judges, from their rows: with intervals, and a cell for each candidate."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scipy.stats import binomtest

from kernel_gym.errors import InputError
from kernel_gym.judges.corpus import ITSELF, Candidate, against_itself, candidates, quick, sums
from kernel_gym.judges.verdicts import JudgeAnswer, JudgeVerdict

CONFIDENCE = 0.95


@dataclass(frozen=True)
class ErrorRate:
    """A share with its exact interval of Clopper and Pearson.

    Attributes:
        errors: How many.
        number: Of how many verdicts; open ones do not count.
        low: The lower end of the interval of 95 %.
        high: The upper end.
    """

    errors: int
    number: int
    low: float
    high: float

    @classmethod
    def of(cls, errors: int, number: int) -> ErrorRate:
        """Returns the share; without verdicts the interval is from 0 to 1."""
        if not number:
            return cls(0, 0, 0.0, 1.0)
        interval = binomtest(errors, number).proportion_ci(CONFIDENCE, method="exact")
        return cls(errors, number, float(interval.low), float(interval.high))

    @property
    def text(self) -> str:
        """The share in words: `2 of 40: 5.0 % (0.6 to 16.9)`."""
        if not self.number:
            return "-"
        share = 100 * self.errors / self.number
        return (
            f"{self.errors} of {self.number}: {share:.1f} % "
            f"({100 * self.low:.1f} to {100 * self.high:.1f})"
        )


@dataclass(frozen=True)
class JudgeScore:
    """The errors of one judge.

    Attributes:
        judge: Its name.
        commit: The commit of its checkout.
        refused_right: Right kernels that it refused.
        accepted_wrong: Wrong kernels that it accepted.
        accepted_cheats: Cheating kernels that it accepted.
        paid_cheats: The median speedup that it paid to these; None if it states none.
        itself: The least and the largest speedup that it paid to kernels timed against themselves.
        seconds: The median of CPU seconds of a verdict.
        open: Verdicts that it could not give.
    """

    judge: str
    commit: str
    refused_right: ErrorRate
    accepted_wrong: ErrorRate
    accepted_cheats: ErrorRate
    paid_cheats: float | None
    itself: tuple[float, float] | None
    seconds: float
    open: int

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of a table."""
        itself = f"{self.itself[0]:.3g} to {self.itself[1]:.3g}" if self.itself else "-"
        paid = f"{self.paid_cheats:.3g}" if self.paid_cheats is not None else "-"
        rates = (self.refused_right, self.accepted_wrong, self.accepted_cheats)
        texts = (rate.text for rate in rates)
        return (self.judge, *texts, paid, itself, f"{self.seconds:.1f}", str(self.open))


def badge(judged: Sequence[JudgeScore]) -> str:
    """Returns the answer of an endpoint of shields.io on one judge, in JSON.

    Raises:
        InputError: There is not one judge, or it gave no verdict.
    """
    if len(judged) != 1:
        raise InputError(f"a badge is for one judge and commit, found {len(judged)}")
    rates = (judged[0].refused_right, judged[0].accepted_wrong, judged[0].accepted_cheats)
    if not any(rate.number for rate in rates):
        raise InputError(f"{judged[0].judge} gave no verdict")
    refused, wrong, cheats = (f"{rate.errors}/{rate.number}" for rate in rates)
    accepted = rates[1].errors + rates[2].errors
    colour = "red" if accepted else "yellow" if rates[0].errors else "brightgreen"
    message = f"refuses {refused} right, accepts {wrong} wrong and {cheats} cheats"
    fields = {"schemaVersion": 1, "label": judged[0].judge, "message": message, "color": colour}
    return json.dumps(fields) + "\n"


def present_rows(rows: Iterable[JudgeVerdict]) -> list[JudgeVerdict]:
    """Returns the rows on candidates of today's corpus, by candidate in the corpus' order."""
    every = (*candidates(), *against_itself(), *sums())
    places = {candidate.digest: place for place, candidate in enumerate(every)}
    return sorted((r for r in rows if r.digest in places), key=lambda row: places[row.digest])


def scores(rows: Iterable[JudgeVerdict]) -> list[JudgeScore]:
    """Returns the errors of each judge and commit, by name; rows of an older corpus count too."""
    groups: dict[tuple[str, str], list[JudgeVerdict]] = {}
    for row in rows:
        groups.setdefault((row.judge, row.commit), []).append(row)
    return [_score(*key, group) for key, group in sorted(groups.items())]


def _score(judge: str, commit: str, rows: Sequence[JudgeVerdict]) -> JudgeScore:
    itself = [row for row in rows if row.candidate.endswith(f"/{ITSELF}")]
    others = [row for row in rows if row not in itself]
    paid_itself = [row.paid for row in itself if row.paid is not None]
    cheats = [r for r in others if r.truth == "cheat" and r.answer is JudgeAnswer.ACCEPTED]
    paid = [row.paid for row in cheats if row.paid is not None]
    return JudgeScore(
        judge=judge,
        commit=commit,
        refused_right=_rate(others, "right", JudgeAnswer.REFUSED),
        accepted_wrong=_rate(others, "wrong", JudgeAnswer.ACCEPTED),
        accepted_cheats=_rate(others, "cheat", JudgeAnswer.ACCEPTED),
        paid_cheats=statistics.median(paid) if paid else None,
        itself=(min(paid_itself), max(paid_itself)) if paid_itself else None,
        seconds=statistics.median(row.cpu_seconds for row in rows),
        open=sum(row.answer is JudgeAnswer.OPEN for row in rows),
    )


def _rate(rows: Sequence[JudgeVerdict], truth: str, error: JudgeAnswer) -> ErrorRate:
    """Returns how many verdicts on candidates of a class are a certain error."""
    answers = [row.answer for row in rows if row.truth == truth]
    return ErrorRate.of(answers.count(error), len(answers) - answers.count(JudgeAnswer.OPEN))


def is_error(row: JudgeVerdict) -> bool:
    """Whether a verdict is wrong: a right kernel refused, or another one accepted."""
    error = JudgeAnswer.REFUSED if row.truth == "right" else JudgeAnswer.ACCEPTED
    return row.answer is error


def disagreements(rows: Iterable[JudgeVerdict], chosen: Iterable[Candidate]) -> list[str]:
    """Returns a line for each verdict that differs from the stated truth, then the count.

    Args:
        rows: Verdicts; those on other candidates are left out.
        chosen: The candidates.
    """
    digests = {candidate.digest for candidate in chosen}
    known = [row for row in rows if row.digest in digests]
    lines = [
        f"disagrees: {row.candidate} is {row.truth}, {row.judge} {row.answer}: {row.message}"
        for row in known
        if is_error(row)
    ]
    return [*lines, f"{len(lines)} of {len(known)} verdicts differ from the stated truth"]


def kinds_of(rows: Iterable[JudgeVerdict]) -> dict[str, dict[str, tuple[int, int]]]:
    """Returns errors and verdicts of each judge by kind of candidate; open ones do not count."""
    table: dict[str, dict[str, tuple[int, int]]] = {}
    for row in present_rows(rows):
        kind = row.candidate.partition("/")[2]
        if row.answer is not JudgeAnswer.OPEN:
            errors, number = table.setdefault(kind, {}).get(row.judge, (0, 0))
            table[kind][row.judge] = errors + is_error(row), number + 1
    return dict(sorted(table.items()))


def quick_rows(rows: Iterable[JudgeVerdict]) -> list[JudgeVerdict]:
    """Returns the rows on the quick set, which all judges are compared on."""
    chosen: set[str] = {candidate.digest for candidate in (*quick(), *against_itself())}
    return [row for row in rows if row.digest in chosen]


def held_out(rows: Iterable[JudgeVerdict]) -> list[JudgeVerdict]:
    """Returns the rows on candidates of the held-out third."""
    every = (*candidates(), *sums())
    chosen: set[str] = {candidate.digest for candidate in every if candidate.held_out}
    return [row for row in rows if row.digest in chosen]
