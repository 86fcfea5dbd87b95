"""Renews the modelled head-room over PyTorch in stored verdicts, after rules of operators changed.

    python -m benchmarks.renew_head_room

It writes what `kernel-gym admit` would: this head-room is computed from sizes alone, and no kernel
runs. Verdicts on other content are left as they are; `kernel-gym admit` makes those again.
"""

from __future__ import annotations

from benchmarks.modelled_baselines import modelled_head_room
from kernel_gym.hardware import SIMULATED
from kernel_gym.tasks.problem import Problem
from kernel_gym.tasks.registry import get_problem, problem_names
from kernel_gym.tasks.task import Task
from kernel_gym.tasks.verdicts import AdmissionVerdict, store_verdict, stored_verdict


def renewed(problem: Problem, verdict: AdmissionVerdict) -> AdmissionVerdict:
    """Returns the verdict with today's modelled head-room on simulated devices."""
    devices = dict(verdict.devices)
    for device, modes in verdict.devices.items():
        arch = device.removeprefix("sim:")
        if arch == device:
            continue
        room = modelled_head_room(problem, SIMULATED[arch])
        devices[device] = {
            mode: one.model_copy(update={"head_room": None if room is None else round(room, 3)})
            if Task(problem, mode).baseline == "torch" and one.head_room is not None
            else one
            for mode, one in modes.items()
        }
    return verdict.model_copy(update={"devices": devices})


def main() -> None:
    """Renews all stored verdicts and prints what changed."""
    for name in problem_names():
        problem = get_problem(name)
        verdict = stored_verdict(problem)
        if verdict is None:
            continue
        new = renewed(problem, verdict)
        if new != verdict:
            store_verdict(problem, new)
            print(name)


if __name__ == "__main__":
    main()
