"""Messages of the judge to a launcher on a GPU; both are trusted, and what a plan does is not."""

from __future__ import annotations

from kernel_gym.protocol import values
from kernel_gym.protocol.request import Answer, BadRequestError, Request, parsed, raw

MIN_CALL_FIELDS = 2
"""A call that is timed states a plan and inputs."""


def _calls(value: object, what: str) -> list[list[int]]:
    calls = [values.wholes(call, what) for call in values.listed(values.anything)(value, what)]
    if any(len(call) < MIN_CALL_FIELDS for call in calls):
        raise BadRequestError(f"{what} has a call without a plan or without inputs")
    return calls


class LoadPlan(Request, verb="load_plan"):
    """Loads a plan in place of the one with its number."""

    number: int = parsed(values.whole)
    plan: dict[str, object] = parsed(values.mapping)
    """The JSON of the plan, in the form of `kernel_gym.plans.write`."""
    codes: bytes = raw()
    constants: bytes = raw()


class LoadReference(Request, verb="load_reference"):
    """Loads trusted code for PyTorch in place of a plan."""

    number: int = parsed(values.whole)
    source: str = parsed(values.text)
    entry: str = parsed(values.text)
    arguments: list[object] = parsed(values.listed(values.anything))
    """See `kernel_gym.launcher.reference.ReferenceExecution`."""


class ExecutePlan(Request, verb="execute"):
    """Executes a plan once, with inputs and results in the shared file or the staging memory."""

    number: int = parsed(values.whole)
    inputs: int = parsed(values.whole)
    """Where the inputs begin, one behind the other."""
    results: list[int] = parsed(values.wholes)
    """A place for each output, then for each input."""
    noop: bool = parsed(values.truth, False)
    """Whether launches are left out."""


class TimeCalls(Request, verb="time"):
    """Executes plans one after the other with cold caches, and takes the time of each."""

    calls: list[list[int]] = parsed(_calls)
    """For each call the number of its plan, where its inputs begin, and a place for each output if
    anybody wants them. Offsets behind the end of the shared file are in the staging memory."""
    graph: bool = parsed(values.truth)
    """Whether the steps are captured as a graph and replayed."""


class PlanLoaded(Answer):
    """The plan was loaded."""

    kernels: list[dict[str, int | str]]
    """Name, registers, local and shared bytes of each kernel."""


class PlanExecuted(Answer):
    """The results of a call are where the request wants them."""

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
