"""Admits traced problems without a start kernel: by their values, and by the reference's time."""

from __future__ import annotations

from kernel_gym.admission.values import SEED, check_values
from kernel_gym.analysis.summary import geometric_mean
from kernel_gym.devices.base import Device
from kernel_gym.judge.timing.torch_model import reference_seconds
from kernel_gym.tasks.importers.manifest import DeviceVerdict, ImportStatus
from kernel_gym.tasks.problem import Problem, Scale
from kernel_gym.tasks.sampling import CPU, make_inputs, train_workloads
from kernel_gym.tasks.task import Task
from kernel_gym.tasks.traced.memory import BoundedMemory, TooMuchMemory

FLAGS = {
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


def head_room_of(problem: Problem, device: Device) -> float | None:
    """Returns the modelled time of eager PyTorch over that of the roofline with one launch."""
    spec, ratios = device.description.spec, []
    for workload in train_workloads(problem, Scale.SIM):
        inputs = make_inputs(problem, workload, SEED, CPU)
        dims = workload.dims
        kinds = problem.dtypes_at(dims)
        least = spec.roofline_seconds(problem.bytes(dims), problem.flops(dims), *kinds)
        ratios.append(reference_seconds(problem, inputs, spec) / (spec.launch_seconds + least))
    mean = geometric_mean(ratios)
    return None if mean is None else round(mean, 3)


def admit_traced(task: Task, device: Device) -> DeviceVerdict:
    """Runs the controls of values on a traced task."""
    problem = task.problem
    try:
        with BoundedMemory():
            report = check_values(problem, Scale.SIM, SEED)
    except TooMuchMemory as error:
        return DeviceVerdict(status=ImportStatus.UNSUPPORTED, reason=str(error))
    flags = tuple(dict.fromkeys(map(flag_of, report.refused)))
    room = head_room_of(problem, device)
    return DeviceVerdict(
        status=ImportStatus.FLAGGED if flags else ImportStatus.ADMITTED,
        reason="; ".join(report.refused)[:300],
        flags=flags,
        notes=(*([] if room is None else [f"head-room {room:.2f}"]), *report.notes),
        controls=dict(report.controls),
    )
