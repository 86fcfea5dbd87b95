"""Messages of the judge to a launcher on a GPU; both are trusted, and what a plan does is not."""

from __future__ import annotations

from kernel_gym.protocol import values
from kernel_gym.protocol.request import Answer, Request, parsed, raw


class LoadPlan(Request, verb="load_plan"):
    """Loads a plan in place of the one before."""

    plan: dict[str, object] = parsed(values.mapping)
    """The JSON of the plan, in the form of `kernel_gym.plans.write`."""
    codes: bytes = raw()
    constants: bytes = raw()


class LoadReference(Request, verb="load_reference"):
    """Loads trusted code for PyTorch in place of a plan."""

    source: str = parsed(values.text)
    entry: str = parsed(values.text)
    arguments: list[object] = parsed(values.listed(values.anything))
    """See `kernel_gym.launcher.reference.ReferenceExecution`."""


class ExecutePlan(Request, verb="execute"):
    """Executes the plan once, with inputs and results in the shared file."""

    inputs: int = parsed(values.whole)
    """Where the inputs begin, one behind the other."""
    results: list[int] = parsed(values.wholes)
    """A place for each output, then for each input."""
    noop: bool = parsed(values.truth, False)
    """Whether launches are left out."""


class TimeCalls(Request, verb="time"):
    """Executes the plan several times, one call after the other, each with inputs of its own."""

    calls: list[list[int]] = parsed(values.listed(values.wholes))
    """For each call where its inputs begin, then where its results go, if anybody wants them."""
    graph: bool = parsed(values.truth)
    """Whether the steps are captured as a graph and replayed."""


class PlanLoaded(Answer):
    """The plan was loaded."""

    kernels: list[dict[str, int | str]]
    """Name, registers, local and shared bytes of each kernel."""


class PlanExecuted(Answer):
    """The results of a call are in the shared file."""

    damaged: int | None
    """The number of a buffer beside which a kernel has written."""


class CallTimes(Answer):
    """The seconds of each call, by events of the device."""

    seconds: list[float]


class LaunchFailed(Answer):
    """A plan that does not load or run. After a fault the launcher must be replaced."""

    error: str
    lost: bool
    """Whether the device is lost to this process."""
    captured: bool = True
    """False if a reference cannot be captured as a graph."""
