"""The interface of an observer, which follows a simulated GPU while a program runs."""

from __future__ import annotations

from typing import Protocol


class Observer(Protocol):
    """Is called for what happens on a device."""

    def launch(self, launch: dict[str, object], clock: float) -> None:
        """A launch has ended well. The clock counts all modelled seconds so far."""

    def fault(self, fault: dict[str, object]) -> None:
        """A launch was stopped. The fields are those of `Fault`."""

    def finding(self, finding: dict[str, object]) -> None:
        """A launch has continued although something was found, with the fields of `Fault`."""

    def missing(self, what: str, name: str, where: str, message: str) -> None:
        """A program needs something that is not there."""
