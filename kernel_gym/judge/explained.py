"""Looks for the cause of wrong values on a train workload: a race, or an undefined read."""

from __future__ import annotations

from dataclasses import replace

from kernel_gym.devices.base import Audit, Failed, FailureKind
from kernel_gym.judge.attempt import Attempt, Verdict
from kernel_gym.judge.expected import Expected
from kernel_gym.records import Outcome
from kernel_gym.tasks.workload import Workload


def explain(attempt: Attempt, verdict: Verdict, workload: Workload, expected: Expected) -> Verdict:
    """Adds the findings of an audited call to a verdict of wrong values.

    The outcome stays the same. The audit only names the instruction to look at. Other verdicts
    are returned unchanged.

    Args:
        attempt: The evaluation, with an open session.
        verdict: The verdict on a train workload. The policy may read its message.
        workload: The workload that failed.
        expected: Its inputs.
    """
    audits = attempt.device.description.audits
    if verdict.outcome is not Outcome.WRONG_VALUES or not audits:
        return verdict
    call = attempt.call(workload, expected, audit=Audit.REVERSED)
    if not isinstance(call, Failed) or call.kind is not FailureKind.RUNTIME:
        return verdict
    message = f"{verdict.message}; cause: {call.message}"
    return replace(verdict, message=message, detail=call.detail, values_alone=False)
