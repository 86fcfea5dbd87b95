"""The interface of an observer, which follows a simulated GPU while a program runs."""

from __future__ import annotations

from typing import Protocol

from kernel_gym.inert import inert_line
from kernel_gym.sim.engine.engine import UnsupportedInstruction
from kernel_gym.sim.timing.launch_profile import LaunchDescription


class Observer(Protocol):
    """Is called for what happens on a device."""

    def launch(self, launch: LaunchDescription, clock: float) -> None:
        """A launch has ended well. The clock counts all modelled seconds so far."""

    def fault(self, fault: dict[str, object]) -> None:
        """A launch was stopped. The fields are those of `Fault`."""

    def finding(self, finding: dict[str, object]) -> None:
        """A launch has continued although something was found, with the fields of `Fault`."""

    def missing(self, what: str, name: str, where: str, message: str) -> None:
        """A program needs something that is not there."""


def report_missing(observer: Observer | None, error: UnsupportedInstruction, kernel: str) -> None:
    """Tells an observer that a kernel has an instruction that the simulator lacks."""
    if observer:
        name = inert_line(error.text.partition(" ")[0])
        advice = "the simulator lacks it: report it with the kernel, or compile without it"
        message = f"{inert_line(str(error))}; {advice}"
        observer.missing("instruction", name, f"kernel {inert_line(kernel)}", message)
