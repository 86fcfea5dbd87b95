"""Messages of the judge to the template process; both ends are trusted."""

from __future__ import annotations

from kernel_gym.protocol import values as fields  # without PyTorch
from kernel_gym.protocol.request import Answer, Request, parsed


class Fork(Request, verb="fork"):
    """Forks a child. The descriptors of the child come with the message."""

    role: str = parsed(fields.text)
    options: dict[str, object] = parsed(fields.mapping)
    home: str = parsed(fields.text)
    """The private folder of a worker."""
    environment: dict[str, str] = parsed(fields.texts_by_name)
    limits: dict[str, object] = parsed(fields.mapping)
    """The fields of `Limits`."""
    trusted: bool = parsed(fields.truth)
    writable: list[str] = parsed(fields.listed(fields.text))
    hidden: list[str] = parsed(fields.listed(fields.text))
    """Files that appear empty to a worker."""
    family: dict[str, object] = parsed(fields.mapping)
    """The fields of `Family`; empty for a child without a memory budget."""


class Kill(Request, verb="kill"):
    """Ends a child and everything that it started."""

    pid: int = parsed(fields.whole)
    grace: float = parsed(fields.number)
    """Seconds to wait for its own end."""


class ReadTimes(Request, verb="times"):
    """Asks for the processor seconds of the template and of its children."""


class Times(Answer):
    """Processor seconds since the template started."""

    seconds: dict[str, float]
    """By role; the template's own are under "template"."""


class Forked(Answer):
    """The new child."""

    pid: int


class Killed(Answer):
    """The end of a child."""

    status: int | None
    """Its exit status, or None if it had to be killed."""
    why: str
    """Why the template had ended it before, if so."""
