"""Admits traced problems without a start kernel: by their values, and by the reference's time.

Values are checked at the sizes of the simulator on every device. On a GPU the reference is checked
at full sizes as well. Its time is taken beside that of the form that `torch.compile` makes.
"""

from __future__ import annotations

from kernel_gym.admission.head_room import ReferenceFailed
from kernel_gym.admission.values import SEED, Refusal, RefusalKind, ValueReport, check_values
from kernel_gym.imports.bench.compiled.process import Missing, MissingMemory
from kernel_gym.imports.bench.full_size import too_large
from kernel_gym.imports.bench.opened import OpenedDevice
from kernel_gym.imports.manifest import CompiledBaseline, DeviceVerdict, ImportStatus
from kernel_gym.imports.traced.memory import BoundedMemory, TooMuchMemory
from kernel_gym.imports.traced.problem import TracedProblem
from kernel_gym.tasks.problem import Scale
from kernel_gym.tasks.task import Task


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
    refusals, compiled = report.refusals, None
    try:
        if device.description.scale is Scale.FULL:
            if large := too_large(problem, device.description):
                return _unsupported(large)
            wrong = opened.compiled.refusals(problem, device)
            refusals += tuple(
                Refusal(RefusalKind.FULL_SIZE, f"at full size the reference fails {text}")
                for text in wrong
            )
        room = opened.rooms.of_reference(problem)
        compiled = opened.compiled.measure(problem, device)
    except MissingMemory as error:
        return _unsupported(f"needs more memory than there is: {error}")
    except (Missing, ReferenceFailed) as error:
        return _unsupported(f"its reference does not run on the device: {error}")
    return _verdict(report, refusals, room, compiled)


def _unsupported(reason: str) -> DeviceVerdict:
    return DeviceVerdict(status=ImportStatus.UNSUPPORTED, reason=reason[:300])


def _verdict(
    report: ValueReport,
    refusals: tuple[Refusal, ...],
    room: float | None,
    compiled: CompiledBaseline | None,
) -> DeviceVerdict:
    flags = tuple(dict.fromkeys(str(refusal.kind) for refusal in refusals))
    return DeviceVerdict(
        status=ImportStatus.FLAGGED if flags else ImportStatus.ADMITTED,
        reason="; ".join(refusal.text for refusal in refusals)[:300],
        flags=flags,
        notes=(*([] if room is None else [f"head-room {room:.2f}"]), *report.notes),
        controls=dict(report.controls),
        compiled=compiled,
    )
