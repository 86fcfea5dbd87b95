"""Admits tasks of recorded calls: their own kernel must pass, and wrong answers must fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch

from kernel_gym.devices.base import Exclusivity, InfraError
from kernel_gym.evaluator import Evaluator
from kernel_gym.imports.manifest import DeviceVerdict, ImportStatus
from kernel_gym.imports.recorded.problem import RecordedProblem
from kernel_gym.judge.expected import Expected, compare
from kernel_gym.judge.reference import expect_of_worker
from kernel_gym.records import BROKEN_TASK, Evaluation, Outcome, Stage
from kernel_gym.tasks.task import Task
from kernel_gym.tasks.workload import Split

Answer = tuple[torch.Tensor, ...]
SAME_SPEED = 0.05
"""How far the speedup of a suite's own kernel may be from 1."""


class UnsoundWorkloadsError(Exception):
    """A suite's own kernel passes on its train workloads, and fails on others.

    Attributes:
        workloads: The sizes of those others, each with its call.
    """

    def __init__(self, workloads: Sequence[Mapping[str, int]]) -> None:
        super().__init__(f"its own kernel fails on {len(workloads)} workloads")
        self.workloads = workloads


def admit_recorded(
    task: Task, evaluator: Evaluator, evidence: Mapping[str, str], notes: Sequence[str]
) -> DeviceVerdict:
    """Runs the controls on a task of recorded calls.

    Args:
        task: The task.
        evaluator: Evaluates on the device.
        evidence: Flags that were found before, each with what was seen.
        notes: Rules that cannot hold for the task.

    Raises:
        UnsoundWorkloadsError: Its own kernel fails on workloads that the suite does not have.
        InfraError: The device failed.
    """
    problem = task.problem
    assert isinstance(problem, RecordedProblem)
    flags = dict(evidence)
    speedup = None
    if task.mode.has_start_kernel:
        own = evaluator.evaluate(task, problem.own_candidate, seed=1)
        if own.outcome is Outcome.INFRA and BROKEN_TASK not in own.labels:
            raise InfraError(own.message)
        speedup = own.speedup
        if own.outcome is not Outcome.PASSED:
            if unsound := _unsound(own, problem):
                raise UnsoundWorkloadsError(unsound)
            flag = "screened" if own.outcome is Outcome.SCREENED else "own kernel fails"
            flags.setdefault(flag, f"{own.outcome}: {own.message}")
        elif speedup is None or abs(speedup - 1) > SAME_SPEED:
            flags.setdefault("unsteady", f"the speedup of its own kernel is {speedup}")
    controls = _controls(task, evaluator)
    for name, passed in controls.items():
        if passed:
            flags.setdefault(f"{name} passes", "a wrong answer passes on every train workload")
    status = ImportStatus.FLAGGED if flags else ImportStatus.ADMITTED
    reason = "; ".join(f"{flag}: {text}" for flag, text in flags.items())[:300]
    return DeviceVerdict(
        status=status,
        reason=reason,
        flags=tuple(flags),
        notes=tuple(notes),
        controls={name: "passes" if passed else "fails" for name, passed in controls.items()},
        speedup=speedup,
    )


def _unsound(own: Evaluation, problem: RecordedProblem) -> list[Mapping[str, int]]:
    """Returns the workloads to leave out after a failure beyond those of the suite."""
    failed = [workload for workload in own.workloads if not workload.passed]
    if any(one.split is Split.TRAIN for one in failed):
        return []
    if failed:
        return [one.dims for one in failed]
    splits = {Stage.ADVERSARIAL: Split.ADVERSARIAL, Stage.UNSEEN: Split.UNSEEN}
    if own.stage not in splits:
        return []
    return [workload.dims for workload in problem.stated_workloads(splits[own.stage]) or ()]


def _controls(task: Task, evaluator: Evaluator) -> dict[str, bool]:
    """Returns by control whether its wrong answer passes on all train workloads."""
    with evaluator.device.held(Exclusivity.SHARED):
        return _tried(task, evaluator)


def _tried(task: Task, evaluator: Evaluator) -> dict[str, bool]:
    passing = dict.fromkeys(CONTROLS, True)
    baseline = evaluator.reference_baseline
    where = evaluator.device.description.torch_device
    for workload in task.problem.stated_workloads(Split.TRAIN) or ():
        expected, other = (expect_of_worker(task, workload, s, baseline, where) for s in (1, 2))
        right = tuple(
            o.to(output.dtype) for o, output in zip(expected.oracle, expected.outputs, strict=True)
        )
        stale = tuple(
            o.to(output.dtype) for o, output in zip(other.oracle, expected.outputs, strict=True)
        )
        for name, control in CONTROLS.items():
            wrong = control(right, stale)
            passing[name] = passing[name] and _passes(task.problem, expected, right, wrong)
    return passing


def _passes(problem: object, expected: Expected, right: Answer, wrong: Answer) -> bool:
    """Whether an answer passes although it differs from the right one."""
    same = all(torch.equal(a, b) for a, b in zip(right, wrong, strict=True))
    return not same and compare(problem, expected, wrong).passed  # type: ignore[arg-type]


def _each(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Answer, Answer], Answer]:
    return lambda right, stale: tuple(change(t.clone()) if t.numel() else t for t in right)


def _poison(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dtype is torch.bool:
        return ~tensor
    tensor.view(-1).view(torch.uint8).fill_(0xFF)
    return tensor


def _without_tail(tensor: torch.Tensor) -> torch.Tensor:
    flat = tensor.view(-1)
    tail = flat[-max(1, len(flat) // 16) :]
    if tensor.dtype is torch.bool:
        tail.logical_not_()
    else:
        tail.copy_((tail.double() + tail.double().abs().max() + 1).to(tail.dtype))
    return tensor


def _scaled(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dtype.is_floating_point:
        return (tensor.double() * 1.1 + 1e-3).to(tensor.dtype)
    if tensor.dtype is torch.bool:
        return ~tensor
    # PyTorch cannot add to unsigned integers of several bytes on the CPU
    return (tensor.to(torch.int64) + 2).to(tensor.dtype)


CONTROLS: dict[str, Callable[[Answer, Answer], Answer]] = {
    "no-op": _each(_poison),
    "zeros": _each(torch.zeros_like),
    "reseed": lambda right, stale: stale,
    "tail": _each(_without_tail),
    "scaled": _each(_scaled),
}
"""Wrong answers: nothing written, zeros, the answer to other values, a wrong tail, 10 % off."""
