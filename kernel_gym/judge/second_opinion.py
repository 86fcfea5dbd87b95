"""Asks a second compiler about a kernel with wrong values: is the compiler wrong, or the kernel?

The same source is compiled without optional passes and judged again. If it is then right on all
workloads, the verdict names the compiler and is masked (rule 29). If any value is wrong, the first
verdict stays. So a masked source holds a right kernel, which would have been paid without the
compiler's fault. Therefore a policy gains nothing from such a mask.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from kernel_gym.devices.base import Session
from kernel_gym.judge.attempt import Attempt, Verdict
from kernel_gym.records import MISCOMPILED, Outcome
from kernel_gym.sandbox.spawn import TemplateError
from kernel_gym.tasks.workload import Workload

Check = Callable[[Attempt], Verdict | None]
FirstCheck = Callable[[Attempt, Workload], Verdict | None]

MESSAGE = (
    "the compiler, not your kernel: the values are wrong, but all are right when Triton compiles "
    "the same source without its optional passes"
)


def with_second_opinion(
    attempt: Attempt, verdict: Verdict, first: FirstCheck, checks: tuple[Check, ...]
) -> Verdict:
    """Returns the verdict, or one that blames the compiler where a second one makes right code.

    The second session has the limits of a candidate: host time, instructions and memory.

    Args:
        attempt: The evaluation, with an open session.
        verdict: The failure that has ended it.
        first: Checks one workload. It is asked about the one that failed, since most kernels are
            wrong there again.
        checks: The checks of values, in order.
    """
    judged = zip(attempt.workloads, attempt.results, strict=True)
    failed = next((workload for workload, result in judged if not result.passed), None)
    if not verdict.values_alone or failed is None or attempt.task.language != "triton":
        return verdict
    session = attempt.session and attempt.session.second_opinion()
    if session is None:
        return verdict
    try:
        right = _is_right(_fresh(attempt, session), failed, first, checks)
    finally:
        with contextlib.suppress(TemplateError):
            session.close()
    if not right:
        return verdict
    attempt.label(MISCOMPILED)
    return Verdict(Outcome.INFRA, MESSAGE)


def _is_right(
    second: Attempt, failed: Workload, first: FirstCheck, checks: tuple[Check, ...]
) -> bool:
    assert second.session is not None
    if second.session.load(second.source) is not None or first(second, failed) is not None:
        return False
    _forget(second)
    return all(check(second) is None for check in checks)


def _fresh(attempt: Attempt, session: Session) -> Attempt:
    """Returns an evaluation of the same source with the same draws and without results."""
    return Attempt(
        attempt.task,
        attempt.source,
        attempt.device,
        attempt.seed,
        attempt.secret,
        attempt.baseline,
        attempt.cache,
        session,
    )


def _forget(attempt: Attempt) -> None:
    """Drops the result of the first check, which the others repeat."""
    attempt.results.clear()
    attempt.workloads.clear()
    attempt.paid.clear()
