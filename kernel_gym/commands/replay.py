"""`kernel-gym replay`: evaluate a recorded run again and compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import track

from kernel_gym.commands.common import (
    FAILED,
    ExecutorOption,
    JsonOption,
    TasksOption,
    console,
    executor_arguments,
    messages,
    note,
    one_line_errors,
    print_json,
)

if TYPE_CHECKING:
    from kernel_gym.analysis.replay import Replayed
    from kernel_gym.storage.run_store import RunStore


def replay(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run folder.")],
    executor: ExecutorOption = "local",
    workers: Annotated[int | None, typer.Option(min=1, help="Evaluations at a time.")] = None,
    plans: Annotated[
        bool, typer.Option("--plans", help="Judge the stored launch plans; run no source.")
    ] = False,
    task: TasksOption = None,
    json: JsonOption = False,
) -> None:
    """Evaluate every submission of a run again. Exit code 1 when a record comes out otherwise.

    On the simulator records must agree bit for bit, except wall-clock times; on a GPU only the
    outcomes must. With --plans no code of a submission runs, one evaluation after the other;
    submissions whose host code made no plan are left out.

    Examples: kernel-gym replay runs/demo
    kernel-gym replay runs/demo --plans
    kernel-gym replay runs/demo --task triton2triton/softmax
    """
    from kernel_gym.analysis.replay import Replayed, judge_again, replay, secret_of
    from kernel_gym.executors import make_executor
    from kernel_gym.storage.json_lines import StoreError
    from kernel_gym.storage.run_store import RunStore

    with one_line_errors():
        store = RunStore(folder)
        for name in task or ():
            if name not in store.config.tasks:
                raise StoreError(f"{folder}: the run has no task {name}")
    total = sum(not task or record.task in task for record in store.records())
    if plans:
        with one_line_errors():
            steps = track(
                judge_again(store, task or None), "judging", total, console=messages, transient=True
            )
            _show(store, [step for step in steps if isinstance(step, Replayed)], total, json)
        return
    with one_line_errors():
        arguments = executor_arguments(executor, store.config.device, None, workers)
        arguments["secret"] = secret_of(store)
        pool = make_executor(executor, **arguments)
    with pool:
        steps = replay(store, pool, task or None)
        replayed = list(track(steps, "evaluating", total, console=messages, transient=True))
    _show(store, replayed, total, json)


def _show(store: RunStore, replayed: list[Replayed], total: int, json: bool) -> None:
    """Says how many of the records came out the same, and which did not."""
    position = {(r.task, r.sample, r.turn): i for i, r in enumerate(store.records())}
    replayed.sort(
        key=lambda record: position[record.record.task, record.record.sample, record.record.turn]
    )
    other = [record for record in replayed if not record.same]
    skipped = total - len(replayed)
    if json:
        rows = [
            {
                "task": o.record.task,
                "sample": o.record.sample,
                "turn": o.record.turn,
                "differences": o.differences,
                "timing_models": o.clocks,
            }
            for o in other
        ]
        print_json({"replayed": len(replayed), "skipped": skipped, "differ": rows})
    else:
        for record in other:
            fields = ", ".join(record.differences)
            note(f"{record.record.task} turn {record.record.turn} differs in {fields}")
        for recorded, present in sorted({record.clocks for record in replayed if record.clocks}):
            note(
                f"recorded with version {recorded} of the timing model, replayed with {present}: "
                "modelled times and speedups are not comparable"
            )
        same = len(replayed) - len(other)
        console.print(f"{same} of {len(replayed)} came out the same; {skipped} left out")
    if other:
        raise typer.Exit(FAILED)
