"""`kernel-gym bench evaluation`: where the processor seconds of an evaluation go."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from kernel_gym.commands.common import (
    DeviceOption,
    JsonOption,
    console,
    one_line_errors,
    print_json,
)
from kernel_gym.commands.tables import folding_table

TASKS = (
    *("triton2triton/softmax", "triton2triton/add_rms_norm", "triton2triton/matmul"),
    *("triton2triton/causal_attention", "hip2hip/softmax", "hip2hip/rms_norm"),
)
JUDGE, CLOSE = "judge", "close"
"""The process of the evaluator, and the stage in which a candidate's processes end."""

Seconds = dict[str, dict[str, float]]
"""Processor seconds by stage and process."""


def evaluation(
    task: Annotated[
        list[str] | None, typer.Option("--task", "-t", help="May be given several times.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="Instead of the start kernel.")
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="Evaluations of a task; the last counts.")] = 3,
    profile: Annotated[
        bool, typer.Option("--profile", help="Show each stage and each process.")
    ] = False,
    device: DeviceOption = "sim:gfx942",
    json: JsonOption = False,
) -> None:
    """Measure the processor seconds of an evaluation, in all processes together.

    The last evaluation in a row counts, so that nothing is loaded for the first time. User and
    system time are added. Other load on the machine does not count, but it makes caches colder.

    Example: kernel-gym bench evaluation --profile --task triton2triton/softmax
    """
    from kernel_gym.tasks import get_task

    rows = []
    with one_line_errors():
        for name in task or TASKS:
            chosen = get_task(name)
            source = file.read_text(encoding="utf-8") if file else chosen.kernel_source
            rows.append(measure(chosen, source, device, count))
            if not json:
                _show(rows[-1], profile)
    if json:
        print_json(rows)


class StageTimes:
    """Processor seconds between the ends of stages, by process.

    The processes are the judge, the template from which others are forked, and its children by
    their role.
    """

    def __init__(self) -> None:
        self.seconds: Seconds = defaultdict(dict)
        self._before = _read()

    def end(self, stage: str) -> None:
        """Gives what was spent since the last call to a stage."""
        now = _read()
        spent = self.seconds[stage]
        for process, seconds in now.items():
            step = seconds - self._before.get(process, 0.0)
            spent[process] = spent.get(process, 0.0) + step
        self._before = now


def _read() -> dict[str, float]:
    from kernel_gym.sandbox.spawn import shared_template

    return {**shared_template().times(), JUDGE: time.process_time()}


def measure(task: object, source: str, device: str, count: int) -> dict[str, object]:
    """Evaluates a source several times and returns what the last evaluation took.

    Args:
        task: The task.
        source: The source.
        device: The name of the device.
        count: How many times it is evaluated.

    Returns:
        The last row of `measure_each`.
    """
    return measure_each(task, [source] * count, device)[-1]


def measure_each(task: Any, sources: Sequence[str], device: str) -> list[dict[str, Any]]:
    """Evaluates sources in turn with one evaluator and returns what each evaluation took.

    Args:
        task: The task.
        sources: The sources, which may repeat.
        device: The name of the device.

    Returns:
        For each source ``task``, ``outcome``, ``message``, ``wall_seconds``, ``cpu_seconds``, and
        ``stages`` with processor seconds by stage and process.
    """
    from kernel_gym.evaluator import Evaluator

    rows = []
    times = StageTimes()
    with Evaluator(device=device, watch=lambda stage: times.end(stage)) as evaluator:
        for source in sources:
            times = StageTimes()
            start = time.perf_counter()
            result = evaluator.evaluate(task, source)
            wall = time.perf_counter() - start
            times.end(CLOSE)
            stages = {stage: dict(row) for stage, row in times.seconds.items()}
            rows.append(
                {
                    "task": task.id,
                    "outcome": str(result.outcome),
                    "message": result.message,
                    "wall_seconds": wall,
                    "cpu_seconds": sum(sum(row.values()) for row in stages.values()),
                    "stages": stages,
                }
            )
    return rows


def _show(row: dict[str, Any], profile: bool) -> None:
    console.print(
        f"{row['task']}: {row['outcome']}, {row['cpu_seconds']:.2f} s of processors, "
        f"{row['wall_seconds']:.2f} s of the wall",
        highlight=False,
    )
    if not profile:
        return
    stages: Seconds = row["stages"]
    processes = sorted(
        {process for spent in stages.values() for process, seconds in spent.items() if seconds}
    )
    numbers = (*processes, "all")
    table = folding_table("stage", *numbers, right=numbers)
    for stage, spent in stages.items():
        cells = [spent.get(process, 0.0) for process in processes]
        table.add_row(stage, *(f"{cell:.2f}" for cell in (*cells, sum(cells))))
    totals = [sum(spent.get(process, 0.0) for spent in stages.values()) for process in processes]
    table.add_row("all", *(f"{total:.2f}" for total in (*totals, sum(totals))))
    console.print(table)
