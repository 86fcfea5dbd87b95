"""The noise floor of a GPU: how much a kernel differs from itself (rule 18).

Measured when a GPU is first used, and again every so many evaluations, by whichever judge comes
along; the figure is left in a file for the others.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

from kernel_gym.devices.base import InfraError
from kernel_gym.judge.protocol import NOISE_EVERY, NOISE_LIMIT
from kernel_gym.judge.timing.deferred_checks import Kept
from kernel_gym.judge.timing.paired import Pairs, interval, quantile_of_noise
from kernel_gym.tasks.registry import get_task
from kernel_gym.tasks.sampling import train_workloads

TASK = "triton2triton/softmax"
REPEATS = 4
WORKLOADS = 3
TRIES = 3
VALID_SECONDS = 3600.0


def noise_floor(device: Any, compare: Callable[..., Any]) -> float:
    """95th percentile of |log(a kernel / the same kernel)| on a device. Call it alone on the GPU.

    Raises:
        InfraError: the GPU is too noisy to score anything on.
    """
    state = _read(device.lock.state)
    if state["left"] <= 0 or time.time() - state["when"] > VALID_SECONDS:
        noise = min(_measurements(device, compare))
        state = {"noise": noise, "left": NOISE_EVERY, "when": time.time()}
    state["left"] -= 1
    if state["noise"] > NOISE_LIMIT:
        state["left"] = 0  # whoever comes next measures anew
    device.lock.state.write_text(json.dumps(state), encoding="utf-8")
    if state["noise"] > NOISE_LIMIT:
        raise InfraError(
            f"{device.name} is too noisy: a kernel differs from itself by {state['noise']:.1%}, "
            f"more than {NOISE_LIMIT:.0%}; is somebody else using it?"
        )
    return float(state["noise"])


def _measurements(device: Any, compare: Callable[..., Any]) -> Iterator[float]:
    """Until one is within the limit, or a few were not: something may have been in the way."""
    for _ in range(TRIES):
        noise = measure_noise(device, compare)
        yield noise
        if noise <= NOISE_LIMIT:
            return


def measure_noise(device: Any, compare: Callable[..., Any]) -> float:
    """Compares a baseline with itself, in two workers, several times."""
    task = get_task(TASK)
    sessions = [device.open(task, trusted=True) for _ in range(2)]
    effects: dict[str, list[float]] = {}
    kept = Kept()
    try:
        for session in sessions:
            failed = session.load(task.baseline_source or "")
            if failed is not None:
                raise InfraError(f"the baseline of {task.id} does not load: {failed.message}")
        for workload in train_workloads(task.problem, device.scale)[:WORKLOADS]:
            for repeat in range(REPEATS):
                found = compare(task, workload, *sessions, repeat, device, kept)
                if not isinstance(found, Pairs):
                    raise InfraError(f"the baseline of {task.id} failed: {found.message}")
                effects.setdefault(workload.key, []).append(interval(found.effects).mean)
    finally:
        for session in sessions:
            session.close()
    wrong = kept.check()
    if wrong:
        raise InfraError(f"the baseline of {task.id} fails: {wrong}")
    return quantile_of_noise(effects)


def _read(path: Any) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {"noise": float(found["noise"]), "left": int(found["left"]), "when": found["when"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {"noise": 0.0, "left": 0, "when": 0.0}
