"""The noise floor of a GPU: how much a kernel differs from itself (rule 18).

It is measured when a GPU is first used, and again after a number of evaluations. The judge that
needs it next measures it, and shares the result with the other judges of the GPU in a file.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from kernel_gym.devices.base import BrokenTaskError, Device, InfraError, TimedSession
from kernel_gym.judge.protocol import NOISE
from kernel_gym.judge.timing.deferred_checks import DeferredChecks
from kernel_gym.judge.timing.log_ratios import interval, quantile_of_noise
from kernel_gym.judge.timing.paired import Ended, PairedResult
from kernel_gym.tasks.registry import get_task
from kernel_gym.tasks.sampling import train_workloads
from kernel_gym.tasks.task import Task

TASK = "triton2triton/softmax"
Compare = Callable[..., PairedResult | Ended]
"""The function `kernel_gym.judge.timing.comparison.compare_sessions`."""


@dataclass(frozen=True)
class _State:
    """The content of the shared file."""

    noise: float = 0.0
    left: int = 0
    """Evaluations until the next measurement."""
    when: float = 0.0
    """The time of the measurement, seconds since the epoch."""


def noise_floor(device: Device, compare: Compare) -> float:
    """Returns the 95th percentile of |log(a kernel / the same kernel)| on a device.

    The caller must hold the GPU alone.

    Raises:
        InfraError: The GPU is too noisy to score anything on it.
    """
    path = device.noise_file
    assert path is not None, "a device with paired timing must have a file for its noise"
    state = _read(path)
    if state.left <= 0 or time.time() - state.when > NOISE.valid_seconds:
        noise = min(_measurements(device, compare))
        state = _State(noise, NOISE.evaluations, time.time())
    too_noisy = state.noise > NOISE.limit
    left = 0 if too_noisy else state.left - 1  # 0: the next evaluation measures again
    path.write_text(json.dumps(asdict(_State(state.noise, left, state.when))), encoding="utf-8")
    if too_noisy:
        raise InfraError(
            f"{device.description.name} is too noisy: a kernel differs from itself by "
            f"{state.noise:.1%}, more than {NOISE.limit:.0%}; is somebody else using it?"
        )
    return state.noise


def _measurements(device: Device, compare: Compare) -> Iterator[float]:
    """Yields measurements until one is within the limit; something may disturb the others."""
    for _ in range(NOISE.measurements):
        noise = measure_noise(device, compare)
        yield noise
        if noise <= NOISE.limit:
            return


def measure_noise(device: Device, compare: Compare) -> float:
    """Compares a baseline with itself in two workers, several times.

    Raises:
        InfraError: The baseline failed.
    """
    task = get_task(TASK)
    sessions = [device.open(task, trusted=True) for _ in range(2)]
    try:
        timed = []
        for session in sessions:
            failed = session.load(task.baseline_source or "")
            if failed is not None:
                raise BrokenTaskError(f"the baseline of {task.id} does not load: {failed.message}")
            assert session.timed is not None
            timed.append(session.timed)
        return _compare_with_itself(device, task, timed, compare)
    finally:
        for session in sessions:
            session.close()


def _compare_with_itself(
    device: Device, task: Task, sessions: list[TimedSession], compare: Compare
) -> float:
    effects: dict[str, list[float]] = {}
    deferred = DeferredChecks()
    workloads = train_workloads(task.problem, device.description.scale)
    for workload in workloads[: NOISE.workloads]:
        for repeat in range(NOISE.repeats):
            result = compare(task, workload, *sessions, repeat, device, deferred)
            if not isinstance(result, PairedResult):
                raise BrokenTaskError(f"the baseline of {task.id} failed: {result.message}")
            effects.setdefault(workload.key, []).append(interval(result.effects).mean)
    wrong = deferred.check()
    if wrong:
        raise BrokenTaskError(f"the baseline of {task.id} fails: {wrong}")
    return quantile_of_noise(effects)


def _read(path: Path) -> _State:
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
        return _State(float(state["noise"]), int(state["left"]), float(state["when"]))
    except (OSError, ValueError, KeyError, TypeError):
        return _State()
