"""Messages of the judge to a launcher on a GPU; both are trusted, and what a plan does is not."""

from __future__ import annotations

from typing import Any

from kernel_gym.protocol import values
from kernel_gym.protocol.request import Answer, Request, parsed, raw


class LoadPlan(Request, verb="load_plan"):
    """Loads a plan in place of the one before."""

    plan: dict[str, Any] = parsed(values.mapping)
    """The JSON of the plan, in the form of `kernel_gym.plans.write`."""
    codes: bytes = raw()
    constants: bytes = raw()


class ExecutePlan(Request, verb="execute"):
    """Executes the plan once. The bytes of outputs, then of inputs, follow the answer."""

    inputs: bytes = raw()
    """The bytes of all inputs, one behind the other."""


class TimePlan(Request, verb="time"):
    """Executes the plan several times, one call after the other."""

    calls: int = parsed(values.whole)
    graph: bool = parsed(values.truth)
    """Whether the steps are captured as a graph and replayed."""
    inputs: bytes = raw()


class PlanLoaded(Answer):
    """The plan was loaded."""


class PlanExecuted(Answer):
    """The values of a call follow: the bytes of each output, then of each input."""

    sizes: list[int]


class PlanTimes(Answer):
    """The seconds of each call, by events of the device."""

    seconds: list[float]


class LaunchFailed(Answer):
    """A plan that does not load or run. After a fault the launcher must be replaced."""

    error: str
    lost: bool
    """Whether the device is lost to this process."""
