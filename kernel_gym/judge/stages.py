"""The stages of an evaluation, in order. Each returns None, or the verdict that ends it.

screen -> build -> train -> adversarial -> unseen -> time. Speed counts only if every check passed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from kernel_gym.devices.base import Audit, Call, Exclusivity, Failed
from kernel_gym.devices.looking_ahead import LookingAhead
from kernel_gym.judge.attempt import Attempt, Verdict, hidden, verdict_of
from kernel_gym.judge.correctness import same_twice, share_right
from kernel_gym.judge.expected import Expected, compare
from kernel_gym.judge.explained import explain
from kernel_gym.judge.metadata import check_metadata
from kernel_gym.judge.protocol import PLAUSIBILITY
from kernel_gym.judge.screen import parse, screen
from kernel_gym.judge.second_opinion import with_second_opinion
from kernel_gym.judge.timing.baselines import tuned
from kernel_gym.judge.timing.methods import method_of
from kernel_gym.records import COMPILER_RACE, Outcome, Stage
from kernel_gym.tasks.embedded import wrong_language
from kernel_gym.tasks.extension import is_extension
from kernel_gym.tasks.problem import Problem, TensorArg
from kernel_gym.tasks.sampling import adversarial_workloads, train_workloads, unseen_workloads
from kernel_gym.tasks.workload import Split, Workload

OTHER_ORDER = "a race: in another order of workgroups and waves, "
"""Begins the message about a result that is right in the order of the simulator only."""

StageFunction = Callable[[Attempt], Verdict | None]


def screen_source(attempt: Attempt) -> Verdict | None:
    """Rejects sources with forbidden imports, calls or names, or in the wrong language."""
    result = screen(attempt.source, attempt.task.language)
    attempt.labels.extend(result.labels)
    rejection = result.rejection or wrong_language(attempt.source, attempt.task.extra)
    return Verdict(Outcome.SCREENED, rejection) if rejection else None


def build(attempt: Attempt) -> Verdict | None:
    """Loads the candidate in a fresh worker, as the device's timing method needs it."""
    language = attempt.task.language
    if language == "triton" or is_extension(attempt.source, language):
        error = _syntax_error(attempt.source)
        if error:
            return Verdict(Outcome.COMPILE_ERROR, error)
    options: dict[str, Any] = {} if attempt.plans is None else {"plans": attempt.plans}
    seed = attempt.data_seed("samples")
    if attempt.ahead is not None:
        attempt.prepare(_train(attempt), "train")
    attempt.session = attempt.device.open(attempt.task, seed=seed, **options)
    verdict = method_of(attempt.device).build(attempt)
    if verdict is None:
        _prepare(attempt)
    return verdict


def _prepare(attempt: Attempt) -> None:
    """Has computed ahead what the candidate is checked with and compared with."""
    if attempt.ahead is None:
        return
    train, adversarial, unseen = _train(attempt), _adversarial(attempt), _unseen(attempt)
    attempt.prepare(adversarial, "adversarial")
    attempt.prepare(unseen, "unseen")
    if isinstance(attempt.session, LookingAhead):
        calls = [attempt.expected_call(workload, "train") for workload in train]
        twice = _twice(attempt, train)
        calls.insert(twice + 1, attempt.expected_call(train[twice], "train", repeats=True))
        calls += [attempt.expected_call(workload, "adversarial") for workload in adversarial]
        calls += [attempt.expected_call(workload, "unseen") for workload in unseen]
        attempt.session.expect(calls)
    for workload in (*train, *unseen):
        if workload.timed:
            attempt.ahead.add(partial(attempt.baseline_seconds_on, workload))


def _train(attempt: Attempt) -> list[Workload]:
    return train_workloads(attempt.task.problem, attempt.device.description.scale)


def _twice(attempt: Attempt, train: list[Workload]) -> int:
    """Returns the index of the workload that is called twice."""
    return attempt.data_seed("called twice") % len(train)


def _adversarial(attempt: Attempt) -> list[Workload]:
    task, scale = attempt.task, attempt.device.description.scale
    seed = attempt.data_seed("adversarial")
    return adversarial_workloads(task.problem, scale, task.language, seed)


def _unseen(attempt: Attempt) -> list[Workload]:
    task, scale = attempt.task, attempt.device.description.scale
    return unseen_workloads(task.problem, scale, task.language, attempt.data_seed("unseen"))


def check_train(attempt: Attempt) -> Verdict | None:
    """Checks values on every train workload; one is also repeated and run without its kernels."""
    workloads = _train(attempt)
    twice = _twice(attempt, workloads)
    for index, workload in enumerate(workloads):
        verdict, expected, outputs = _check(attempt, workload, "train")
        if verdict is None and index == twice:
            verdict = _check_again(attempt, workload, expected, outputs)
        if verdict is not None:
            return explain(attempt, verdict, workload, expected)
    return None


def check_adversarial(attempt: Attempt) -> Verdict | None:
    """Checks values on odd sizes, strides and distributions; the first failure ends it."""
    for workload in _adversarial(attempt):
        verdict, *_ = _check(attempt, workload, "adversarial", Audit.REVERSED)
        if verdict is not None:
            return hidden(verdict, Split.ADVERSARIAL)
    return None


def check_unseen(attempt: Attempt) -> Verdict | None:
    """Checks values on unseen workloads of all kinds, so that transfer is known for each kind."""
    first: Verdict | None = None
    for workload in _unseen(attempt):
        verdict, *_ = _check(attempt, workload, "unseen")
        first = first or verdict
        if verdict is not None and verdict.outcome in (Outcome.TIMEOUT, Outcome.RUNTIME_ERROR):
            break  # the worker has ended, or its device is in an error state
    return hidden(first, Split.UNSEEN) if first else None


def audit_paid(attempt: Attempt) -> Verdict | None:
    """Audits every machine code that ran in a paid call at least once (rule 22)."""
    while missing := attempt.paid.keys() - attempt.audited:
        workload = attempt.paid[min(missing)]
        expected = attempt.expected(workload, "audit")
        call = attempt.call(workload, expected, audit=Audit.ON)
        verdict, *_ = _judge(attempt.task.problem, expected, call)
        if verdict is None and min(missing) not in attempt.audited:
            text = "a kernel that ran in a paid call does not run when that is repeated"
            verdict = Verdict(Outcome.HACK, text)
        if verdict is not None:
            shown = workload.split is Split.TRAIN or verdict.outcome is Outcome.HACK
            return verdict if shown else hidden(verdict, workload.split)
    return None


def time_workloads(attempt: Attempt) -> Verdict | None:
    """Compares with the baseline on train and unseen workloads, and with physics (rule 20)."""
    return method_of(attempt.device).time(attempt)


def check_timed(attempt: Attempt) -> Verdict | None:
    """Checks the values of timed calls whose check was deferred (rule 17)."""
    wrong = attempt.check_deferred()
    return Verdict(Outcome.WRONG_VALUES, wrong) if wrong else None


def name_compiler(attempt: Attempt) -> Verdict | None:
    """Masks a kernel that is right everywhere, but in which the compiler has made a race (rule 28).

    It is the last step: a kernel that is wrong, too slow or not timed has failed before, so that no
    failure can be masked like this.
    """
    if not attempt.compiler_fault:
        return None
    attempt.label(COMPILER_RACE)
    text = f"the compiler has made a race that hardware can lose: {attempt.compiler_fault}"
    return Verdict(Outcome.INFRA, text)


def ask_again(attempt: Attempt, verdict: Verdict) -> Verdict:
    """Asks a second compiler about a kernel with wrong values (rule 29)."""

    def first(second: Attempt, failed: Workload) -> Verdict | None:
        return _check(second, failed, str(failed.split))[0]

    checks = (check_train, check_adversarial, check_unseen, audit_paid)
    return with_second_opinion(attempt, verdict, first, checks)


Step = tuple[Stage, StageFunction]
PIPELINE: tuple[tuple[Exclusivity, tuple[Step, ...]], ...] = (
    (Exclusivity.FREE, ((Stage.SCREEN, screen_source), (Stage.BUILD, build))),
    (
        Exclusivity.ALONE,
        (
            (Stage.TRAIN, check_train),
            (Stage.ADVERSARIAL, check_adversarial),
            (Stage.UNSEEN, check_unseen),
            (Stage.UNSEEN, audit_paid),
            (Stage.TIME, time_workloads),
            (Stage.TIME, check_timed),
            (Stage.TIME, name_compiler),
        ),
    ),
)
"""Groups of steps, and how each group holds the device. The device is waited for once in a group.

Checking values takes a tenth of a second alone on a GPU, and most of a second beside others, which
could not be timed meanwhile. So one group for everything on the device costs less than two.
"""


def _check(
    attempt: Attempt, workload: Workload, purpose: str, audit: Audit = Audit.DRAWN
) -> tuple[Verdict | None, Expected, tuple[torch.Tensor, ...]]:
    """Checks one workload: call, metadata, launches, values. Records the result in any case."""
    problem = attempt.task.problem
    expected = attempt.expected(workload, purpose)
    call = attempt.call(workload, expected, audit=audit)
    verdict, fields, outputs = _judge(problem, expected, call)
    if verdict is None and isinstance(call, Call) and tuned(problem, call):
        # The first call was autotuned, so a second one is timed. It gets fresh data, because it
        # could return the results of the first.
        expected = attempt.expected(workload, f"{purpose} after tuning")
        call = attempt.call(workload, expected, audit=audit)
        verdict, fields, outputs = _judge(problem, expected, call)
    if isinstance(call, Call):
        if workload.split is Split.TRAIN and call.kernels:
            attempt.launched[len(attempt.results)] = call.kernels
        for operator in call.refused if workload.split is Split.TRAIN else ():
            attempt.label(f"refused {operator}")  # on hidden workloads it may reveal sizes
        fields |= {
            "candidate_seconds": call.seconds or None,
            "launches": call.launches,
            "launch_seconds": call.launch_seconds,
            "time_factor": call.time_factor,
            "speedup_factor": call.ratio_factor if attempt.task.baseline_source else None,
            "uncalibrated": call.uncalibrated,
            "plan_sha256": call.plan,
            "plan_from": call.plan_from,
        }
        if expected.baseline_seconds:
            attempt.baseline_seconds[len(attempt.results)] = expected.baseline_seconds
        if workload.split is not Split.ADVERSARIAL:
            attempt.paid |= dict.fromkeys(call.codes, workload)
    attempt.note(workload, verdict is None, message=verdict.message if verdict else "", **fields)
    return verdict, expected, outputs


def _judge(
    problem: Problem, expected: Expected, call: Call | Failed
) -> tuple[Verdict | None, dict[str, object], tuple[torch.Tensor, ...]]:
    if isinstance(call, Failed):
        return verdict_of(call), {}, ()
    wrong = check_metadata(expected.outputs, call)
    if wrong:
        return Verdict(Outcome.WRONG_METADATA, wrong), {}, ()
    outputs = tuple(o.tensor for o in call.outputs if o.tensor is not None)
    check = compare(problem, expected, outputs)
    fields: dict[str, object] = {"worst_error": _finite(check.worst)}
    if check.passed and call.launches == 0 and any(t.numel() for t in outputs):
        return Verdict(Outcome.HACK, "the answer is right, but no kernel launched"), fields, outputs
    if check.passed and (library := _library_work(expected, call)):
        return Verdict(Outcome.HACK, library), fields, outputs
    where = ""
    if check.passed and call.other_outputs:
        others = tuple(o.tensor for o in call.other_outputs if o.tensor is not None)
        check = compare(problem, expected, others)
        where = OTHER_ORDER
    if check.passed:
        return None, fields, outputs
    element = check.element
    message = check.message
    if element is not None:
        message = f"output {element.output!r}{list(element.index)}: {message}"
    fields["element"] = element
    verdict = Verdict(Outcome.WRONG_VALUES, where + message, values_alone=not where)
    return verdict, fields, outputs


def _library_work(expected: Expected, call: Call) -> str:
    """Describes a call that spends more time in operators of PyTorch than the suite's own code.

    In imported tasks operators that compute are allowed beside kernels (rule 10). They may not do
    the work of the kernels.
    """
    allowed = PLAUSIBILITY.library_share * expected.operator_seconds
    if call.operator_seconds <= allowed:
        return ""
    return (
        f"operators of PyTorch took {call.operator_seconds * 1e6:.1f} us "
        f"({', '.join(sorted(call.operators))[:200]}), and "
        f"{expected.operator_seconds * 1e6:.1f} us in the suite's own code: "
        "the work belongs into your kernels"
    )


def _check_again(
    attempt: Attempt,
    workload: Workload,
    expected: Expected,
    outputs: tuple[torch.Tensor, ...],
) -> Verdict | None:
    """Repeats a call, which must agree (rule 9), and runs it without kernels (rule 10).

    The candidate cannot know which workload is repeated.
    """
    again = attempt.call(workload, expected, audit=Audit.AGAIN)
    if isinstance(again, Call):
        attempt.repeated = len(attempt.results) - 1, again.seconds
    verdict, _, repeated = _judge(attempt.task.problem, expected, again)
    if verdict is not None:
        return verdict
    for output, first, second, oracle, reference in zip(
        expected.outputs, outputs, repeated, expected.oracle, expected.reference, strict=True
    ):
        if not same_twice(first, second, oracle, reference):
            text = f"output {output.name!r} differs between two calls on the same data: a race"
            return Verdict(Outcome.WRONG_VALUES, text)
    return _replay_without_kernels(attempt, workload, expected)


def _replay_without_kernels(
    attempt: Attempt, workload: Workload, expected: Expected
) -> Verdict | None:
    """Checks that library copies did not do all or most of the work."""
    problem = attempt.task.problem
    replay = attempt.call(workload, expected, noop=True)
    verdict, _, _ = _judge(problem, expected, replay)
    if verdict is None:
        return Verdict(Outcome.HACK, "the answer is right although no kernel of it ran")
    in_place = any(isinstance(arg, TensorArg) and arg.in_place for arg in problem.args)
    if in_place or not isinstance(replay, Call) or check_metadata(expected.outputs, replay):
        return None
    outputs = tuple(output.tensor for output in replay.outputs)
    share = share_right(outputs, expected.oracle)
    if share > PLAUSIBILITY.noop_share:
        text = f"{share:.0%} of the answer is right although no kernel of it ran"
        return Verdict(Outcome.HACK, text)
    return None


def _syntax_error(source: str) -> str:
    try:
        parse(source)
    except SyntaxError as error:
        return f"SyntaxError: {error.msg} (line {error.lineno})"
    except (ValueError, RecursionError, MemoryError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _finite(value: float) -> float | None:
    return value if value != float("inf") else None
