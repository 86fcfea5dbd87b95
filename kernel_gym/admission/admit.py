"""Admitting problems: kernels over an executor, values here beside it, one verdict a problem."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed

from kernel_gym.admission.values import check_values
from kernel_gym.devices.base import Device
from kernel_gym.evaluator import Evaluator
from kernel_gym.executors.base import Executor
from kernel_gym.judge.baselines import Baseline, BaselineTimes
from kernel_gym.judge.protocol import PROTOCOL_VERSION
from kernel_gym.records import Evaluation, Outcome
from kernel_gym.summary import geometric_mean
from kernel_gym.tasks.admission import ModeVerdict, Verdict, content_hash
from kernel_gym.tasks.control_kernels import KERNELS
from kernel_gym.tasks.problem import Problem
from kernel_gym.tasks.sampling import train_workloads
from kernel_gym.tasks.task import Mode, Task, modes_of
from kernel_gym.tasks.workload import Split

SEED = 0
"""Verdicts are reproducible: data and unseen workloads come from here."""

_FIRST = {"triton": Mode.TRITON2TRITON, "hip": Mode.HIP2HIP}
"""The mode in which a language's start kernel is evaluated."""


class AdmissionError(RuntimeError):
    """A problem could not be tried for a reason that is not its own."""


def admit_all(
    problems: Sequence[Problem], executor: Executor, jobs: int
) -> Iterator[tuple[Problem, Verdict | AdmissionError]]:
    """Admits many at a time, and yields verdicts as they are reached."""
    with Evaluator(executor.device) as evaluator, ThreadPoolExecutor(jobs) as pool:
        device = evaluator.device
        futures = {pool.submit(_admit, p, executor, device): p for p in problems}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def admit(problem: Problem, executor: Executor) -> Verdict:
    """The verdict on one problem, in all modes that the executor's device has languages for.

    Raises:
        AdmissionError: the machine failed, so that there is none.
    """
    ((_, found),) = admit_all([problem], executor, 1)
    if isinstance(found, AdmissionError):
        raise found
    return found


def _admit(problem: Problem, executor: Executor, device: Device) -> Verdict | AdmissionError:
    content = content_hash(problem)  # as it is now: it may be edited meanwhile
    languages = {Task(problem, mode).language for mode in modes_of(problem)}
    tried = [language for language in device.languages if language in languages]
    starts = {language: _submit(executor, problem, language) for language in tried}
    spoiled = {
        (language, name): _submit(executor, problem, language, make(problem, language))
        for language in tried
        for name, make in KERNELS[language].items()
    }
    values = check_values(problem, device.scale, SEED)
    controls = dict(values.controls)
    reasons = {language: list(values.refused) for language in tried}
    try:
        for (language, name), future in spoiled.items():
            if _finished(future).outcome is Outcome.PASSED:
                text = f"passes as a {language} kernel"
                controls[name] = text
                reasons[language].append(f"{name}: {text}")
        modes: dict[Mode, ModeVerdict] = {}
        for language, start in starts.items():
            evaluation = _finished(start)
            refused = (*reasons[language], *_refused_kernel(evaluation))
            modes |= _modes(problem, language, evaluation, refused, device)
    except AdmissionError as error:
        return error
    return Verdict(
        content=content,
        protocol=PROTOCOL_VERSION,
        controls=controls,
        devices={device.name: modes},
    )


def _submit(
    executor: Executor, problem: Problem, language: str, source: str | None = None
) -> Future[Evaluation]:
    task = Task(problem, _FIRST[language])
    return executor.submit(task.id, source or task.kernel_source, SEED)


def _finished(future: Future[Evaluation]) -> Evaluation:
    evaluation = future.result()
    if evaluation.outcome is Outcome.INFRA:
        raise AdmissionError(f"{evaluation.task}: {evaluation.message}")
    return evaluation


def _refused_kernel(evaluation: Evaluation) -> list[str]:
    """Rule 1 for a start kernel."""
    if evaluation.outcome is Outcome.PASSED:
        return []
    return [f"its start kernel: {evaluation.outcome}: {evaluation.message}"]


def _modes(
    problem: Problem,
    language: str,
    evaluation: Evaluation,
    refused: tuple[str, ...],
    device: Device,
) -> dict[Mode, ModeVerdict]:
    """Rule 4: the verdict on each mode of a language, with its head-room."""
    found = {}
    for mode in modes_of(problem):
        task = Task(problem, mode)
        if task.language == language:
            passed = evaluation.outcome is Outcome.PASSED
            room = _head_room(task, evaluation, device) if passed else None
            found[mode] = ModeVerdict(refused=refused, head_room=room)
    return found


def _head_room(task: Task, evaluation: Evaluation, device: Device) -> float | None:
    """Time of the baseline over the least possible: the roofline and one launch."""
    results = evaluation.by_split(Split.TRAIN)
    baseline = Baseline(device, BaselineTimes())
    ratios = []
    for workload, result in zip(train_workloads(task.problem, device.scale), results, strict=True):
        seconds = result.baseline_seconds
        if task.baseline == "torch":
            seconds = baseline.seconds(task, workload)
        if seconds is None or result.roofline_seconds is None:
            return None
        ratios.append(seconds / (device.spec.launch_seconds + result.roofline_seconds))
    baseline.close()
    mean = geometric_mean(ratios)
    return None if mean is None else round(mean, 3)
