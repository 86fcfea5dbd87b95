"""`kernel-gym replay`: evaluate a recorded run again and compare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track

from kernel_gym.commands.common import (
    FAILED,
    ExecutorOption,
    JsonOption,
    console,
    executor_arguments,
    messages,
    note,
    one_line_errors,
    print_json,
)


def replay(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run folder.")],
    executor: ExecutorOption = "local",
    workers: Annotated[int | None, typer.Option(min=1, help="Evaluations at a time.")] = None,
    json: JsonOption = False,
) -> None:
    """Evaluate every submission of a run again. Exit code 1 when a record comes out otherwise.

    On the simulator records must agree bit for bit, except wall-clock times; on a GPU only the
    outcomes must.

    Example: kernel-gym replay runs/demo
    """
    from kernel_gym.analysis.replay import replay, secret_of
    from kernel_gym.executors import make_executor
    from kernel_gym.storage.run_store import RunStore

    with one_line_errors():
        store = RunStore(folder)
        arguments = executor_arguments(executor, store.config.device, None, workers)
        arguments["secret"] = secret_of(store)
        pool = make_executor(executor, **arguments)
    with pool:
        steps = replay(store, pool)
        total = len(store.records())
        replayed = list(track(steps, "evaluating", total, console=messages, transient=True))
    position = {(r.task, r.sample, r.turn): i for i, r in enumerate(store.records())}
    replayed.sort(key=lambda one: position[one.record.task, one.record.sample, one.record.turn])
    other = [one for one in replayed if not one.same]
    skipped = len(position) - len(replayed)
    if json:
        rows = [
            {
                "task": o.record.task,
                "sample": o.record.sample,
                "turn": o.record.turn,
                "differences": o.differences,
            }
            for o in other
        ]
        print_json({"replayed": len(replayed), "skipped": skipped, "differ": rows})
    else:
        for one in other:
            fields = ", ".join(one.differences)
            note(f"{one.record.task} turn {one.record.turn} differs in {fields}")
        same = len(replayed) - len(other)
        console.print(f"{same} of {len(replayed)} came out the same; {skipped} left out (infra)")
    if other:
        raise typer.Exit(FAILED)
