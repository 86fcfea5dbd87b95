"""How far the draw of the recorded workgroups decides a modelled time.

Each start kernel is called several times on the same data. Only the seed of the recorded workgroups
differs, so all of the difference is noise of the clock.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import closing
from typing import Annotated

import typer

from benchmarks.figures import Subject
from benchmarks.renewal import DEVICE, MACHINE, NewEntry, entry_maker, rounded, store
from kernel_gym.devices.base import Call
from kernel_gym.devices.registry import open_device
from kernel_gym.judge.timing.baselines import BaselineRunner, BaselineTimes
from kernel_gym.tasks import Scale, get_problem, make_inputs, problem_names, train_workloads
from kernel_gym.tasks.task import Mode, Task
from kernel_gym.tasks.verdicts import stored_verdict

SUBJECT = "draws"
COMMAND = "python -m benchmarks draws"
DRAWS = 5
"""Calls of a workload with different recorded workgroups."""
_SEED = 3


def draws(
    machine: Annotated[str, typer.Option(help="Where it runs, a key of machines.json.")] = MACHINE,
) -> None:
    """Model each start kernel with several draws of its recorded workgroups, on the same data.

    It stores how much the times of a workload differ, and takes some ten processor minutes.

    Example: python -m benchmarks draws
    """
    spreads = {}
    runner = BaselineRunner(open_device(DEVICE), BaselineTimes())
    with closing(runner):
        for problem in map(get_problem, problem_names()):
            verdict = stored_verdict(problem)
            if verdict and Mode.TRITON2TRITON in verdict.devices.get(DEVICE, {}):
                spread = max(_spreads(Task(problem, Mode.TRITON2TRITON), runner), default=1.0)
                spreads[problem.name] = spread
                typer.echo(f"{problem.name}: {spread:.3f}")
    store(SUBJECT, figures(spreads, entry_maker(SUBJECT, machine)))


def figures(spreads: dict[str, float], new_entry: NewEntry) -> Subject:
    """Returns the figures of the longest over the shortest time, by problem."""
    values = sorted(spreads.values())
    worst = max(spreads, key=lambda name: spreads[name])
    equal = sum(value <= 1.01 for value in values)
    common = {"command": COMMAND, "clock": "modelled"}
    entries = (
        new_entry(
            "problems",
            id="draws-equal",
            metric="Start kernels whose time differs by at most 1 % between draws of workgroups",
            value=equal,
            unit=f"of {len(values)}",
            **common,
        ),
        new_entry(
            id="draws-ninth-decile",
            metric="Longest over shortest time of five draws, ninth decile of start kernels",
            value=rounded(statistics.quantiles(values, n=10)[-1], 3),
            unit="x",
            **common,
        ),
        new_entry(
            id="draws-most",
            metric="Longest over shortest time of five draws, the most",
            value=rounded(values[-1], 2),
            unit="x",
            note=f"It is {worst}.",
            **common,
        ),
    )
    return Subject(title="What the draw of recorded workgroups decides", entries=entries)


def _spreads(task: Task, runner: BaselineRunner) -> Iterator[float]:
    """The longest over the shortest time of each train workload."""
    for workload in train_workloads(task.problem, Scale.SIM):
        inputs = make_inputs(task.problem, workload, _SEED)
        runner.call(task, inputs, workload.dims, 0)  # host code that tunes itself has tuned then
        calls = [runner.call(task, inputs, workload.dims, seed) for seed in range(1, DRAWS + 1)]
        seconds = [call.seconds for call in calls if isinstance(call, Call) and call.seconds]
        if len(seconds) == DRAWS:
            yield max(seconds) / min(seconds)
