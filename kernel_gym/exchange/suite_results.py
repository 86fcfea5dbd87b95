"""The results of suites' own evaluators: one line for each task and sample, and their comparison.

The files come from processes in which candidates ran, so they are hostile text until they are
parsed: numbers are bounded, names are shortened, and nothing of them changes a verdict or a reward.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kernel_gym.errors import InputError
from kernel_gym.exchange.imported_replies import ImportedReply
from kernel_gym.inert import inert_line

MAX_RESULTS = 100_000
"""Most results of one file."""
MAX_NAME_CHARACTERS = 300
MAX_SPEEDUP = 1e6
"""A speedup beyond it, or one that is not finite, counts as none."""


class ResultError(InputError, ValueError):
    """A file of results cannot be read. The message names the file and the reason."""


@dataclass(frozen=True)
class SuiteResult:
    """The verdict of a suite's evaluator on one sample of one task.

    Attributes:
        name: The task's name in the suite, or the name of its file.
        sample: The number of the sample, from 1.
        called: Whether it compiled or its call returned.
        right: Whether its answers were right.
        speedup: Its speedup; None without one.
    """

    name: str
    sample: int
    called: bool
    right: bool
    speedup: float | None

    def is_about(self, reply: ImportedReply) -> bool:
        """Whether the result is about the task of a reply."""
        short = self.name.rpartition("/")[2]
        return self.name == reply.name or short in (reply.file_name, reply.name)


@dataclass(frozen=True)
class Pair:
    """A reply with our verdict and the suite's."""

    reply: ImportedReply
    theirs: SuiteResult

    @property
    def agree(self) -> bool:
        """Whether both say the same about its answers."""
        return self.reply.right == self.theirs.right


def paired(replies: Sequence[ImportedReply], results: Sequence[SuiteResult]) -> list[Pair]:
    """Returns each reply with the suite's result on its sample, where there is one."""
    return [
        Pair(reply, result)
        for reply in replies
        for result in results
        if result.is_about(reply) and result.sample == reply.record.sample
    ]


def parse_name(value: object) -> str:
    """Returns a name in one line. Anything but a text is an empty name."""
    return inert_line(value, MAX_NAME_CHARACTERS) if isinstance(value, str) else ""


def parse_speedup(value: object) -> float | None:
    """Returns a positive and finite speedup within bounds, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and 0 < number <= MAX_SPEEDUP else None


def parse_flag(value: object) -> bool:
    """Returns whether a flag is set: true, or the number 1."""
    return value is True or (type(value) is int and value == 1)
