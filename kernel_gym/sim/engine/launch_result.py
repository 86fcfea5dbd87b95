"""The outcome of a launch, and further runs of one whose workgroups are unlike each other."""

from __future__ import annotations

import ctypes as ct
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from kernel_gym.sim import layouts
from kernel_gym.sim.engine.faults import Fault
from kernel_gym.sim.timing.model import Modelled

MAX_FURTHER_WORKGROUPS = 64
"""Workgroups that each further run of a launch records besides those of the runs before."""
MAX_FURTHER_RUNS = 2
"""Runs of a launch that record further workgroups."""
MAX_KEPT_BYTES = 64 << 20
"""Most memory that is copied before a launch so that it can run again. A program with more, such as
a whole model, has the time of the first run, in which work that was not recorded is dear."""
FURTHER_RUNS = "further_runs"
"""The entry of a profile that counts them."""


@dataclass(frozen=True)
class LaunchResult:
    """Outcome of a launch.

    Attributes:
        fault: The reason why the kernel was stopped, or None.
        seconds: Modelled time; None if it was not requested or the kernel was stopped.
        profile: JSON-able profile of the model; empty without a model.
        wave_instructions: Instructions executed, summed over waves.
        findings: What was found and did not stop the launch: see `Engine.launch`.
        unlike: Workgroups that no recorded one is like, if they matter to the time.
    """

    fault: Fault | None
    seconds: float | None
    profile: dict[str, Any]
    wave_instructions: int
    findings: tuple[Fault, ...] = ()
    unlike: tuple[int, ...] = ()


def unlike_workgroups(
    api: ct.CDLL, engine: int, program: int, modelled: Modelled, seed: int
) -> tuple[int, ...]:
    """Returns workgroups of the last launch to record in a further run.

    Args:
        api: The engine library.
        engine: Handle of the engine.
        program: Handle of the program.
        modelled: The time of the launch.
        seed: Draws the members of classes of workgroups. Secret from the candidate.
    """
    if modelled.well_recorded:
        return ()
    numbers = (ct.c_uint64 * MAX_FURTHER_WORKGROUPS)()
    count = api.sim_unrecorded(engine, program, seed, numbers, MAX_FURTHER_WORKGROUPS)
    return tuple(numbers[:count])


def record_unlike(
    result: LaunchResult,
    request: layouts.LaunchRequest,
    run: Callable[[layouts.LaunchRequest], LaunchResult],
) -> LaunchResult:
    """Runs a launch again with more recorded workgroups, as long as the recorded ones are too few.

    Args:
        result: The outcome of the first run.
        request: Its request, as it was before it.
        run: Restores memory and runs a request.
    """
    chosen: list[int] = []
    for number in range(1, MAX_FURTHER_RUNS + 1):
        if result.fault or not result.unlike:
            break
        chosen += result.unlike
        numbers = (ct.c_uint64 * len(chosen))(*chosen)
        again = layouts.LaunchRequest.from_buffer_copy(request)
        again.further, again.further_count = ct.addressof(numbers), len(chosen)
        other = run(again)
        profile = other.profile and other.profile | {FURTHER_RUNS: number}
        result = replace(other, profile=profile, findings=result.findings)
    return result
