"""Looks for the cause of wrong values on a train workload: a race, or an undefined read."""

from __future__ import annotations

from dataclasses import replace

from kernel_gym.devices.base import Audit, Failed, FailureKind
from kernel_gym.judge.attempt import Attempt, Verdict
from kernel_gym.judge.expected import Expected
from kernel_gym.records import Clock, Outcome
from kernel_gym.tasks.workload import Workload


def explain(attempt: Attempt, verdict: Verdict, workload: Workload, expected: Expected) -> Verdict:
    """Adds what an audited call finds to a verdict of wrong values; others stay as they are.

    The outcome stays the same: the audit only names the instruction to look at.

    Args:
        attempt: whose session is still open; the verdict ends it.
        verdict: of a train workload, whose messages the policy may read.
        workload: the one that failed.
        expected: its inputs.
    """
    audited = attempt.device.clock is Clock.MODELLED
    if verdict.outcome is not Outcome.WRONG_VALUES or not audited:
        return verdict
    call = attempt.call(workload, expected, audit=Audit.REVERSED)
    if not isinstance(call, Failed) or call.kind is not FailureKind.RUNTIME:
        return verdict
    return replace(verdict, message=f"{verdict.message}; cause: {call.message}", detail=call.detail)
