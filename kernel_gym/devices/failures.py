"""Describes how a candidate's processes ended, in the same words on every device."""

from __future__ import annotations

import signal
from collections.abc import Mapping

from kernel_gym.devices.base import DeviceLostError, Failed, FailureKind, InfraError
from kernel_gym.formatting import anonymous
from kernel_gym.inert import inert_line
from kernel_gym.sandbox.spawn import Child

EXIT_SECONDS = 5.0
"""Wall seconds for the end of a process that has closed its pipe. Its status says how it ended."""


def describe_exit(worker: Child) -> str:
    """Ends a worker that has closed its pipe, and describes how it ended.

    Raises:
        DeviceLostError: It was killed by SIGKILL. A machine that is out of memory sends this
            signal, and so does a candidate that ends itself. If it happens again, the candidate is
            blamed.
        InfraError: The template has died, and its children with it.
    """
    status = exit_status(worker)
    if worker.ended_for:
        return f"the candidate {worker.ended_for}"
    if status == -signal.SIGKILL:
        raise DeviceLostError(exit_text(status))
    return exit_text(status)


def exit_status(child: Child) -> int | None:
    """Ends a process that has closed its pipe, and returns its status, as `exit_text` takes it.

    Raises:
        InfraError: The template has died, and its children with it.
    """
    status = child.close(grace=EXIT_SECONDS)
    if not child.template_alive:
        raise InfraError("the worker template died, and its children with it")
    return status


def exit_text(status: int | None) -> str:
    """Describes an exit status.

    Args:
        status: Minus the number of a signal, or an exit status. The candidate may have chosen any
            value. None if it is not known.
    """
    if status is None:
        return "the worker exited during the call"
    if -signal.NSIG < status < 0:
        names = {int(s): s.name for s in signal.Signals}
        return f"the worker was killed by {names.get(-status, f'signal {-status}')}"
    return f"the worker exited with status {status & 0xFF} during the call"


def describe_fault(fault: Mapping[str, object]) -> Failed:
    """Describes the fault that stopped a launch on the simulator; its message says where."""
    kind = FailureKind.TIMEOUT if str(fault["kind"]).endswith("_limit") else FailureKind.RUNTIME
    return Failed(kind, inert_line(anonymous(str(fault["message"]))))
