"""Admits problems: runs kernels in an executor, checks values here, and makes the verdicts."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path

from kernel_gym.admission.head_room import HeadRoom, ReferenceFailed
from kernel_gym.admission.values import SEED, check_values
from kernel_gym.devices.base import Device, InfraError
from kernel_gym.evaluator import Evaluator
from kernel_gym.executors.base import Executor
from kernel_gym.judge.protocol import PROTOCOL_VERSION
from kernel_gym.records import Evaluation, Outcome
from kernel_gym.storage.secret import PUBLIC
from kernel_gym.tasks.controls.kernels import KERNELS
from kernel_gym.tasks.names import Mode
from kernel_gym.tasks.problem import Problem, Scale
from kernel_gym.tasks.task import Task, modes_of
from kernel_gym.tasks.verdicts import (
    AdmissionVerdict,
    ModeVerdict,
    content_hash,
    kernel_digest,
)

_FIRST = {mode.written_in: mode for mode in Mode if mode.has_start_kernel}
"""The mode in which a language's start kernel is evaluated."""


class AdmissionError(RuntimeError):
    """A problem could not be checked, and the problem is not the cause."""


def admit_all(
    problems: Sequence[Problem], executor: Executor, jobs: int
) -> Iterator[tuple[Problem, AdmissionVerdict | AdmissionError]]:
    """Admits several problems at a time, and yields verdicts as they finish.

    Problems start in their order. A caller that stops early must close the executor, which ends the
    evaluations that still run.

    Args:
        problems: The problems to check.
        executor: The executor for kernels. It decides the device. Its secret is `PUBLIC`, so that a
            verdict is the same each time.
        jobs: The most problems at one time.

    Raises:
        ValueError: The executor has a secret.
    """
    if executor.secret is not PUBLIC:
        raise ValueError("the executor draws from a secret: give secret=PUBLIC for admission")
    pool = ThreadPoolExecutor(jobs)
    with Evaluator(executor.device) as evaluator:
        device = evaluator.device
        rooms = HeadRoom(device)
        futures = {pool.submit(_admit, p, executor, device, rooms): p for p in problems}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            rooms.close()


def admit(problem: Problem, executor: Executor) -> AdmissionVerdict:
    """Returns the verdict on one problem, in all modes with a language of the executor's device.

    Raises:
        AdmissionError: The machine failed, so there is no verdict.
        ValueError: The executor has a secret.
    """
    ((_, verdict),) = admit_all([problem], executor, 1)
    if isinstance(verdict, AdmissionError):
        raise verdict
    return verdict


def _admit(
    problem: Problem, executor: Executor, device: Device, rooms: HeadRoom
) -> AdmissionVerdict | AdmissionError:
    content = content_hash(problem)  # first, since the files may be edited during the checks
    verdict = partial(AdmissionVerdict, content=content)
    hardware = device.description.hardware
    languages = {mode: Task(problem, mode).written_in for mode in modes_of(problem)}
    known = (*device.description.languages, *device.description.embedded)
    judged = [language for language in known if language in languages.values()]
    with_start = [language for language in judged if problem.kernel(language) is not None]
    try:
        values = check_values(problem, Scale.SIM, SEED)  # the same on every device
        sources = {
            (k, name): make(problem, k) for k in with_start for name, make in KERNELS[k].items()
        }
    except Exception as error:  # a problem that raises is refused
        refused = (_raised(problem, error),)
        modes = {
            mode: _mode_verdict(Task(problem, mode), refused)
            for mode, language in languages.items()
            if language in judged
        }
        return verdict(controls={}, devices={hardware: modes})
    starts = {language: _submit(executor, problem, language) for language in with_start}
    spoiled = {key: _submit(executor, problem, key[0], text) for key, text in sources.items()}
    try:
        passed = _passing(spoiled)
        modes = _without_start(problem, set(judged) - set(with_start), values.refused, rooms)
        for language, start in starts.items():
            kernels = [f"{name}: {text}" for (k, name), text in passed.items() if k == language]
            reasons = (*values.refused, *kernels)
            modes |= _modes(problem, language, _finished(start), reasons, rooms)
    except AdmissionError as error:
        return error
    except InfraError as error:
        return AdmissionError(f"{problem.name}: {error}")
    controls = {**values.controls, **{name: text for (_, name), text in passed.items()}}
    return verdict(controls=controls, devices={hardware: modes}, notes=values.notes)


def _without_start(
    problem: Problem, languages: set[str], refused: tuple[str, ...], rooms: HeadRoom
) -> dict[Mode, ModeVerdict]:
    """Returns the verdicts on modes in languages without a start kernel, from values alone."""
    modes = [m for m in modes_of(problem) if Task(problem, m).written_in in languages]
    room = None
    if modes and not refused:
        try:
            room = rooms.of_reference(problem)
        except ReferenceFailed as error:
            refused = (f"its PyTorch reference: {error}",)
    return {mode: _mode_verdict(Task(problem, mode), refused, room) for mode in modes}


def _mode_verdict(
    task: Task, refused: tuple[str, ...], head_room: float | None = None
) -> ModeVerdict:
    kernel = kernel_digest(task.problem, task.mode)
    return ModeVerdict(
        protocol=PROTOCOL_VERSION, refused=refused, head_room=head_room, kernel=kernel
    )


def _submit(
    executor: Executor, problem: Problem, language: str, source: str | None = None
) -> Future[Evaluation]:
    task = Task(problem, _FIRST[language])
    return executor.submit(task.id, source or task.kernel_source, SEED)


def _raised(problem: Problem, error: Exception) -> str:
    """Describes an error that the problem's own code raised. Other errors are raised again."""
    text = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    if isinstance(error, SyntaxError):
        return f"a kernel does not parse: {text}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if Path(f.filename).parent == problem.folder]
    if not own:
        raise error
    return f"{Path(own[-1].filename).name}, line {own[-1].lineno} raises {text}"


def _passing(spoiled: Mapping[tuple[str, str], Future[Evaluation]]) -> dict[tuple[str, str], str]:
    """Returns the control kernels that pass, by language and name of the control."""
    finished = {key: _finished(future) for key, future in spoiled.items()}
    return {
        (language, name): f"passes as a {language} kernel"
        for (language, name), evaluation in finished.items()
        if evaluation.outcome is Outcome.PASSED
    }


def _finished(future: Future[Evaluation]) -> Evaluation:
    evaluation = future.result()
    if evaluation.outcome is Outcome.INFRA:
        raise AdmissionError(f"{evaluation.task}: {evaluation.message}")
    return evaluation


def _refused_kernel(evaluation: Evaluation) -> list[str]:
    """Checks rule 1 for a start kernel. Returns the reason for a refusal."""
    if evaluation.outcome is Outcome.PASSED:
        return []
    return [f"its start kernel: {evaluation.outcome}: {evaluation.message}"]


def _modes(
    problem: Problem,
    language: str,
    evaluation: Evaluation,
    refused: tuple[str, ...],
    rooms: HeadRoom,
) -> dict[Mode, ModeVerdict]:
    """Returns the verdict and head-room of each mode of a language, from its start kernel."""
    refused = (*refused, *_refused_kernel(evaluation))
    verdicts = {}
    for mode in modes_of(problem):
        task = Task(problem, mode)
        if task.written_in != language:
            continue
        room, reasons = None, refused
        if evaluation.outcome is Outcome.PASSED:
            try:
                room = rooms.of(task, evaluation)
            except ReferenceFailed as error:
                reasons = (*refused, f"its PyTorch reference: {error}")
        verdicts[mode] = _mode_verdict(task, reasons, room)
    return verdicts
