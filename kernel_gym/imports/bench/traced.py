"""Admits traced problems without a start kernel: by their values, and by the reference's time.

Values are checked at the sizes of the simulator on every device. On a GPU the reference is checked
and timed at full sizes as well, beside its form that `torch.compile` makes.
"""

from __future__ import annotations

from kernel_gym.admission.head_room import ReferenceFailed
from kernel_gym.admission.values import SEED, ValueReport, check_values
from kernel_gym.imports.bench.compiled.process import Missing, MissingMemory
from kernel_gym.imports.bench.full_size import too_large
from kernel_gym.imports.bench.opened import OpenedDevice
from kernel_gym.imports.manifest import CompiledBaseline, DeviceVerdict, ImportStatus
from kernel_gym.imports.traced.memory import BoundedMemory, TooMuchMemory
from kernel_gym.imports.traced.problem import TracedProblem
from kernel_gym.tasks.problem import Scale
from kernel_gym.tasks.task import Task

FLAGS = {
    "at full size": "fails at full size",
    "changes no output": "ignored input",
    "stale output: passes": "seed-blind",
    "constant: passes": "constant output",
    "zeros: passes": "constant output",
    "mean: passes": "constant output",
    "differ between two calls": "random",
    "passes": "hides in the tolerance",
    "roundings off": "coarse reference",
    "ill-conditioned": "ill-conditioned",
    "NaN": "NaN",
    "costs": "too dear",
}
"""Kinds of flags by a part of the reason."""


def flag_of(reason: str) -> str:
    """Returns the kind of a reason for a refusal."""
    return next((flag for part, flag in FLAGS.items() if part in reason), "other")


def admit_traced(task: Task, opened: OpenedDevice) -> DeviceVerdict:
    """Runs the controls of values on a traced task, and measures its baselines on a GPU.

    Args:
        task: A task whose problem was traced.
        opened: The device.

    Raises:
        InfraError: The machine failed.
    """
    problem = task.problem
    assert isinstance(problem, TracedProblem)
    try:
        with BoundedMemory():
            report = check_values(problem, Scale.SIM, SEED)
    except TooMuchMemory as error:
        return _unsupported(str(error))
    device = opened.evaluator.device
    refused, compiled = report.refused, None
    try:
        if device.description.scale is Scale.FULL:
            if large := too_large(problem, device.description):
                return _unsupported(large)
            wrong = opened.compiled.refusals(problem, device)
            refused = (*refused, *(f"at full size the reference fails {text}" for text in wrong))
        room = opened.rooms.of_reference(problem)
        if device.description.scale is Scale.FULL:
            compiled = opened.compiled.measure(problem, device)
    except MissingMemory as error:
        return _unsupported(f"needs more memory than there is: {error}")
    except (Missing, ReferenceFailed) as error:
        return _unsupported(f"its reference does not run on the device: {error}")
    return _verdict(report, refused, room, compiled)


def _unsupported(reason: str) -> DeviceVerdict:
    return DeviceVerdict(status=ImportStatus.UNSUPPORTED, reason=reason[:300])


def _verdict(
    report: ValueReport,
    refused: tuple[str, ...],
    room: float | None,
    compiled: CompiledBaseline | None,
) -> DeviceVerdict:
    flags = tuple(dict.fromkeys(map(flag_of, refused)))
    return DeviceVerdict(
        status=ImportStatus.FLAGGED if flags else ImportStatus.ADMITTED,
        reason="; ".join(refused)[:300],
        flags=flags,
        notes=(*([] if room is None else [f"head-room {room:.2f}"]), *report.notes),
        controls=dict(report.controls),
        compiled=compiled,
    )
