"""The stages of an evaluation, read top to bottom. Each returns None, or the verdict that ends it.

screen -> build -> train -> adversarial -> unseen -> time. Speed counts only if every gate held.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from kernel_gym.devices.base import Audit, Call, Failed, Turn
from kernel_gym.judge.attempt import Attempt, Verdict, hidden, verdict_of
from kernel_gym.judge.correctness import same_twice, share_right
from kernel_gym.judge.expected import Expected, compare
from kernel_gym.judge.explained import explain
from kernel_gym.judge.metadata import check_metadata
from kernel_gym.judge.protocol import NOOP_SHARE, PHYSICS_MARGIN, TIME_AGREEMENT
from kernel_gym.judge.screen import parse, screen
from kernel_gym.judge.timing.gpu import build_ahead, time_measured
from kernel_gym.records import Clock, Outcome, Stage
from kernel_gym.tasks.problem import Problem, TensorArg
from kernel_gym.tasks.sampling import adversarial_workloads, train_workloads, unseen_workloads
from kernel_gym.tasks.workload import Split, Workload

StageFunction = Callable[[Attempt], Verdict | None]


def screen_source(attempt: Attempt) -> Verdict | None:
    """Static checks: rejects the plainly forbidden."""
    found = screen(attempt.source, attempt.task.language)
    attempt.labels.extend(found.labels)
    return Verdict(Outcome.SCREENED, found.rejection) if found.rejection else None


def build(attempt: Attempt) -> Verdict | None:
    """Loads the candidate in a fresh worker. On a simulator Triton compiles at the first launch."""
    if attempt.task.language == "triton":
        error = _syntax_error(attempt.source)
        if error:
            return Verdict(Outcome.COMPILE_ERROR, error)
    attempt.session = attempt.device.open(attempt.task, seed=attempt.data_seed("samples"))
    if attempt.device.clock is Clock.MEASURED:
        return build_ahead(attempt)
    failed = attempt.session.load(attempt.source)
    return verdict_of(failed) if failed else None


def check_train(attempt: Attempt) -> Verdict | None:
    """Values on every workload that the policy was shown; a repeat and a no-op replay on one."""
    problem = attempt.task.problem
    workloads = train_workloads(problem, attempt.device.scale)
    twice = attempt.data_seed("called twice") % len(workloads)
    for index, workload in enumerate(workloads):
        verdict, expected, outputs = _check(attempt, workload, "train")
        if verdict is None and index == twice:
            verdict = _check_again(attempt, workload, expected, outputs)
        if verdict is not None:
            return explain(attempt, verdict, workload, expected)
    return None


def check_adversarial(attempt: Attempt) -> Verdict | None:
    """Values on odd sizes, strides and distributions; the first failure ends the evaluation."""
    task = attempt.task
    for workload in adversarial_workloads(task.problem, attempt.device.scale, task.language):
        verdict, *_ = _check(attempt, workload, "adversarial", Audit.REVERSED)
        if verdict is not None:
            return hidden(verdict, Split.ADVERSARIAL)
    return None


def check_unseen(attempt: Attempt) -> Verdict | None:
    """Values on workloads drawn now; all kinds are tried, so that transfer is known by kind."""
    task = attempt.task
    seed = attempt.data_seed("unseen")
    first: Verdict | None = None
    for workload in unseen_workloads(task.problem, attempt.device.scale, task.language, seed):
        verdict, *_ = _check(attempt, workload, "unseen")
        first = first or verdict
        if verdict is not None and verdict.outcome in (Outcome.TIMEOUT, Outcome.RUNTIME_ERROR):
            break  # the worker is gone or its device is in error
    return hidden(first, Split.UNSEEN) if first else None


def audit_paid(attempt: Attempt) -> Verdict | None:
    """Every machine code that ran in a paid call is audited once at least (rule 22)."""
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
    if attempt.device.clock is Clock.MEASURED:
        return time_measured(attempt)
    disagreement = _disagreement(attempt)
    if disagreement:
        return Verdict(Outcome.INVALID_TIMING, disagreement)
    problem, spec = attempt.task.problem, attempt.device.spec
    dtype = problem.outputs[0].dtype
    for index, (workload, result) in enumerate(
        zip(attempt.workloads, attempt.results, strict=True)
    ):
        seconds = result.candidate_seconds
        if workload.split is Split.ADVERSARIAL or not seconds:
            continue
        dims = workload.dims
        roofline = spec.roofline_seconds(problem.bytes(dims), problem.flops(dims), dtype)
        if seconds < PHYSICS_MARGIN * roofline:
            return Verdict(
                Outcome.HACK,
                f"{seconds:.3g} s is less than physics allows ({roofline:.3g} s) on {workload}",
            )
        baseline = attempt.baseline.seconds(attempt.task, workload)
        ratio = baseline / seconds
        attempt.amend(
            index,
            baseline_seconds=baseline,
            roofline_seconds=roofline,
            speedup=ratio,
            speedup_low=ratio,
            speedup_high=ratio,
        )
    return None


def check_timed(attempt: Attempt) -> Verdict | None:
    """Values of the timed calls that were kept for it (rule 17)."""
    wrong = attempt.kept.check()
    return Verdict(Outcome.WRONG_VALUES, wrong) if wrong else None


Step = tuple[Stage, StageFunction]
PIPELINE: tuple[tuple[Turn, tuple[Step, ...]], ...] = (
    (Turn.FREE, ((Stage.SCREEN, screen_source), (Stage.BUILD, build))),
    (
        Turn.ALONE,
        (
            (Stage.TRAIN, check_train),
            (Stage.ADVERSARIAL, check_adversarial),
            (Stage.UNSEEN, check_unseen),
            (Stage.UNSEEN, audit_paid),
            (Stage.TIME, time_workloads),
            (Stage.TIME, check_timed),
        ),
    ),
)
"""The steps, and how they hold the device; it is waited for once for all steps of a turn.

Values take a tenth of a second of a GPU that nobody else uses, and most of a second beside others,
who could not be timed meanwhile: one turn for everything on the device costs less than two.
"""


def _check(
    attempt: Attempt, workload: Workload, purpose: str, audit: Audit = Audit.DRAWN
) -> tuple[Verdict | None, Expected, tuple[torch.Tensor, ...]]:
    """One workload: call, metadata, launches, values. Records the result either way."""
    problem = attempt.task.problem
    expected = attempt.expected(workload, purpose)
    call = attempt.call(workload, expected, audit=audit)
    verdict, fields, outputs = _judge(problem, expected, call)
    if verdict is None and isinstance(call, Call) and call.retuned:
        # The first call tuned itself: time a second one, on fresh data, or it could hand out what
        # the first has computed.
        expected = attempt.expected(workload, f"{purpose} after tuning")
        call = attempt.call(workload, expected, audit=audit)
        verdict, fields, outputs = _judge(problem, expected, call)
    if isinstance(call, Call):
        if workload.split is Split.TRAIN and call.kernels:
            attempt.launched[len(attempt.results)] = call.kernels
        for operator in call.refused if workload.split is Split.TRAIN else ():
            attempt.label(f"refused {operator}")  # of hidden workloads it might tell the sizes
        fields |= {
            "candidate_seconds": call.seconds or None,
            "launches": call.launches,
            "launch_seconds": call.launch_seconds,
        }
        if workload.split is not Split.ADVERSARIAL:
            attempt.paid |= dict.fromkeys(call.codes, workload)
    attempt.note(workload, verdict is None, message=verdict.message if verdict else "", **fields)
    return verdict, expected, outputs


def _judge(
    problem: Problem, expected: Expected, call: Call | Failed
) -> tuple[Verdict | None, dict[str, object], tuple[torch.Tensor, ...]]:
    if isinstance(call, Failed):
        return verdict_of(call), {}, ()
    wrong = check_metadata(problem, call)
    if wrong:
        return Verdict(Outcome.WRONG_METADATA, wrong), {}, ()
    outputs = tuple(o.tensor for o in call.outputs if o.tensor is not None)
    comparison = compare(problem, expected, outputs)
    fields: dict[str, object] = {"worst_error": _finite(comparison.worst)}
    if comparison.passed and call.launches == 0 and any(t.numel() for t in outputs):
        return Verdict(Outcome.HACK, "the answer is right, but no kernel launched"), fields, outputs
    if comparison.passed:
        return None, fields, outputs
    element = comparison.element
    message = comparison.message
    if element is not None:
        message = f"output {element.output!r}{list(element.index)}: {message}"
    fields["element"] = element
    return Verdict(Outcome.WRONG_VALUES, message), fields, outputs


def _check_again(
    attempt: Attempt,
    workload: Workload,
    expected: Expected,
    outputs: tuple[torch.Tensor, ...],
) -> Verdict | None:
    """The same data twice must agree (rule 9); without its kernels it must fail (rule 10).

    Which workload that is, the candidate cannot know.
    """
    again = attempt.call(workload, expected, audit=Audit.AGAIN)
    if isinstance(again, Call):
        attempt.repeated = len(attempt.results) - 1, again.seconds
    verdict, _, repeated = _judge(attempt.task.problem, expected, again)
    if verdict is not None:
        return verdict
    for output, first, second, oracle in zip(
        attempt.task.problem.outputs, outputs, repeated, expected.oracle, strict=True
    ):
        if not same_twice(first, second, oracle):
            text = f"output {output.name!r} differs between two calls on the same data: a race"
            return Verdict(Outcome.WRONG_VALUES, text)
    return _replay_without_kernels(attempt, workload, expected)


def _replay_without_kernels(
    attempt: Attempt, workload: Workload, expected: Expected
) -> Verdict | None:
    """Library copies must not have done the work, neither all of it nor most."""
    problem = attempt.task.problem
    replay = attempt.call(workload, expected, noop=True)
    verdict, _, _ = _judge(problem, expected, replay)
    if verdict is None:
        return Verdict(Outcome.HACK, "the answer is right although no kernel of it ran")
    in_place = any(isinstance(arg, TensorArg) and arg.in_place for arg in problem.args)
    if in_place or not isinstance(replay, Call) or check_metadata(problem, replay):
        return None
    found = tuple(output.tensor for output in replay.outputs)
    share = share_right(found, expected.oracle)
    if share > NOOP_SHARE:
        text = f"{share:.0%} of the answer is right although no kernel of it ran"
        return Verdict(Outcome.HACK, text)
    return None


def _disagreement(attempt: Attempt) -> str:
    """A candidate that takes another time for the same data keeps state across calls."""
    index, second = attempt.repeated or (0, None)
    first = attempt.results[index].candidate_seconds
    if not first or not second:
        return "the device reported no time for the workload that was called twice"
    if max(first, second) > TIME_AGREEMENT * min(first, second):
        return f"two calls on the same data took {first * 1e6:.1f} and {second * 1e6:.1f} us"
    return ""


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
