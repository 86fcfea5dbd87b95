"""A worker's failures in the judge's words, the same on every device."""

from __future__ import annotations

import signal
from typing import Any

from kernel_gym.devices.base import Failed, FailureKind
from kernel_gym.formatting import anonymous
from kernel_gym.sandbox.spawn import Child
from kernel_gym.symbols import plain_name


def read_failure(error: Any) -> Failed:
    """A worker's own account of its failure: believed, since it can only hurt itself."""
    error = error if isinstance(error, dict) else {}
    kind = FailureKind.COMPILE if error.get("kind") == "compile" else FailureKind.RUNTIME
    name, message = str(error.get("type", "Error")), str(error.get("message", ""))
    return Failed(kind, f"{name}: {message}"[:600], str(error.get("detail", ""))[:8000])


def describe_exit(worker: Child) -> str:
    """How a worker ended that closed its pipe; it is gone afterwards."""
    status = worker.close(grace=0.5)
    if worker.ended_for:
        return f"the candidate {worker.ended_for}"
    if status is not None and status < 0:
        return f"the worker was killed by {signal.Signals(-status).name}"
    return f"the worker exited{'' if status is None else f' with status {status}'} during the call"


def describe_fault(fault: dict[str, Any]) -> Failed:
    """What stopped a launch on the simulated device: what, in which kernel, where."""
    kind = FailureKind.TIMEOUT if fault["kind"].endswith("_limit") else FailureKind.RUNTIME
    where = [f"kernel {plain_name(fault['kernel'])}", fault.get("instruction") or ""]
    if fault.get("source"):
        where.append(f"at {fault['source']}")
    detail = ", ".join(w for w in where if w)
    if fault.get("workgroup") is not None:
        detail += f", workgroup {fault['workgroup']}, wave {fault['wave']}, lane {fault['lane']}"
    return Failed(kind, anonymous(fault["message"]), anonymous(detail))
