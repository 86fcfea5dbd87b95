"""`kernel-gym plan`: show what a source launches on a task, as data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from kernel_gym.commands.common import (
    FAILED,
    JsonOption,
    TaskArgument,
    console,
    messages,
    note,
    one_line_errors,
    print_json,
)
from kernel_gym.commands.tables import folding_table

if TYPE_CHECKING:
    from kernel_gym.devices.base import Failed
    from kernel_gym.plans.types import LaunchPlan
    from kernel_gym.tasks import Task
    from kernel_gym.tasks.workload import Workload

DATA_SEED = 0
"""Seed of the data on which host code that tunes itself is timed."""


def plan(
    task_id: TaskArgument,
    file: Annotated[Path, typer.Argument(help="The source.", exists=True, dir_okay=False)],
    device: Annotated[str, typer.Option("--device", help="A simulated device.")] = "sim:gfx942",
    json: JsonOption = False,
) -> None:
    """Show the launch plan of each train workload. Exit code 1 when a call has no plan.

    The host code of the source runs without a device, on tensors without data. What it would
    launch, with all arguments, is the plan.

    Example: kernel-gym plan triton2triton/softmax my_softmax.py
    """
    from kernel_gym.devices.base import Failed
    from kernel_gym.tasks import get_task

    with one_line_errors():
        task = get_task(task_id)
        source = file.read_text(encoding="utf-8", errors="replace")
        _check_device(device)
    with one_line_errors(), messages.status("recording"):
        results = list(_plans(task, source, device))
    plans = [(workload, result) for workload, result in results if not isinstance(result, Failed)]
    if json:
        print_json([_to_json(*pair) for pair in plans])
    else:
        _show(plans)
    for workload, result in results:
        if isinstance(result, Failed):
            note(f"{'' if workload is None else f'{workload}: '}{result.kind}: {result.message}")
    if len(plans) < len(results):
        raise typer.Exit(FAILED)


def _check_device(name: str) -> None:
    from kernel_gym.devices.sim.backend import NAMES
    from kernel_gym.errors import InputError

    if name not in NAMES:
        raise InputError(f"device: found {name}, expected one of {', '.join(NAMES)}")


def _plans(
    task: Task, source: str, device: str
) -> Iterator[tuple[Workload | None, LaunchPlan | Failed]]:
    """Yields the plan or the failure of each train workload, or one failure of all of them."""
    from kernel_gym.devices.sim.backend import arch_of
    from kernel_gym.devices.sim.planned_session import PlannedSession
    from kernel_gym.devices.sim.session import SimOptions
    from kernel_gym.tasks import Scale, make_inputs, train_workloads

    session = PlannedSession(task, SimOptions(arch=arch_of(device)))
    with closing(session):
        failed = session.load(source)
        if failed is not None:
            yield None, failed
            return
        for workload in train_workloads(task.problem, Scale.SIM):
            inputs = make_inputs(task.problem, workload, DATA_SEED)
            yield workload, session.record(inputs, workload.dims)


def _to_json(workload: Workload | None, plan: LaunchPlan) -> dict[str, object]:
    from kernel_gym.plans.identity import plan_hash
    from kernel_gym.plans.text import plan_lines
    from kernel_gym.plans.write import write_plan

    header, _, _ = write_plan(plan)
    text = list(plan_lines(plan))
    return {"workload": str(workload), "sha256": plan_hash(plan), "text": text, "plan": header}


def _show(plans: list[tuple[Workload | None, LaunchPlan]]) -> None:
    from kernel_gym.plans.text import plan_lines

    console.print(_table(plans))
    for workload, plan in plans:
        console.print(f"\n{workload}", markup=False, highlight=False)
        for line in plan_lines(plan):
            console.print(line, markup=False, highlight=False, soft_wrap=True)


def _table(plans: list[tuple[Workload | None, LaunchPlan]]) -> Table:
    from kernel_gym.plans.identity import plan_hash

    headers = ("launches", "steps", "buffers", "bytes", "constant bytes", "sha256")
    table = folding_table("workload", *headers, right=headers, title="launch plans")
    for workload, plan in plans:
        size = sum(buffer.size for buffer in plan.buffers)
        numbers = (plan.launches, len(plan.steps), len(plan.buffers), size, plan.constants_bytes)
        table.add_row(str(workload), *map(str, numbers), plan_hash(plan)[:12])
    return table
