"""The row that a judge's verdict on one candidate becomes, and files of such rows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kernel_gym.errors import InputError

MAX_MESSAGE_CHARACTERS = 300
_PATH = re.compile(r"(?<![\w.])(?:/[\w.+@-]+)+/([\w.+@-]*)")


class JudgeAnswer(StrEnum):
    """The answer of a judge on a candidate."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    OPEN = "could not say"
    """The judge failed, was stopped by a limit, or has no form for the candidate."""


class JudgeVerdict(BaseModel):
    """One verdict. Files of rows come from anywhere, so every field is checked."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    judge: str = Field(pattern=r"^[\w.+-]{1,60}$")
    commit: str = Field(max_length=60)
    """The commit of the judge's checkout, or a digest of its files."""
    runner: str = Field(default="", max_length=60)
    """The commit of kernel-gym whose adapter and simulator made the row; a `+` if changed."""
    candidate: str = Field(max_length=100)
    digest: str = Field(pattern="^[0-9a-f]{16}$")
    """The digest of problem and candidate. Rows of an older corpus are thus known."""
    truth: str = Field(pattern="^(right|wrong|cheat)$")
    answer: JudgeAnswer
    paid: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """The speedup that the judge states for what it accepts; None if it states none."""
    cpu_seconds: float = Field(ge=0, allow_inf_nan=False)
    message: str = Field(default="", max_length=MAX_MESSAGE_CHARACTERS)


def short_message(text: str) -> str:
    """Returns the last words of a text in one line, without folders of this machine."""
    line = " ".join(_PATH.sub(r"\1", text).split())
    printable = "".join(c for c in line if c.isprintable())
    return printable[-MAX_MESSAGE_CHARACTERS:]


def read_verdicts(files: Iterable[Path]) -> list[JudgeVerdict]:
    """Returns the rows of files; the last one of a judge on a candidate counts.

    Half a line at the end of a file, which an interrupted run leaves, is left out.

    Raises:
        InputError: A file cannot be read, or a line is no verdict.
    """
    rows: dict[tuple[str, str, str], JudgeVerdict] = {}
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{file}: {error}") from None
        whole = text[: text.rfind("\n") + 1].splitlines()
        for number, line in enumerate(whole, 1):
            try:
                row = JudgeVerdict.model_validate_json(line)
            except ValidationError as error:
                reason = error.errors()[0]["msg"]
                raise InputError(f"{file}, line {number}: no verdict: {reason}") from None
            rows[row.judge, row.commit, row.candidate] = row
    return list(rows.values())
