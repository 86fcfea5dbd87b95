"""`kernel-gym admit`: decide which tasks are good enough for the suite."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.progress import track

from kernel_gym.commands.common import (
    FAILED,
    INTERRUPTED,
    DeviceOption,
    JsonOption,
    OptionalSuiteOption,
    TasksOption,
    console,
    messages,
    note,
    one_line_errors,
    print_json,
)
from kernel_gym.commands.mutation_table import mutate as mutation_test_of
from kernel_gym.commands.tables import folding_table

if TYPE_CHECKING:
    from kernel_gym.commands.output import Row
    from kernel_gym.executors import Executor
    from kernel_gym.tasks.problem import Problem
    from kernel_gym.tasks.verdicts import AdmissionVerdict

_STYLE = {"admitted": "green", "saturated": "yellow", "refused": "bold red"}


def admit(
    suite: OptionalSuiteOption = None,
    task: TasksOption = None,
    device: DeviceOption = "sim:gfx942",
    resume: Annotated[
        bool, typer.Option(help="Only problems without a verdict on their present content.")
    ] = False,
    workers: Annotated[
        int, typer.Option("--workers", "--jobs", min=1, help="Evaluations at one time.")
    ] = 2,
    mutate: Annotated[
        bool,
        typer.Option("--mutate", help="Change the references instead: each change must be caught."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Try problems and keep the verdicts beside them. Exit code 1 when one is refused.

    A problem is tried in all its modes at once, whichever of its tasks is named; tasks that are
    named come before the suite. Each verdict is kept when it is reached: after an interruption
    give the same command with --resume.

    With --mutate single-point changes of the PyTorch references are judged instead, on the CPU.
    Exit code 1 when more than 3 % pass unexplained.

    Example: kernel-gym admit --suite quickstart --resume --workers 2
    """
    from kernel_gym.devices import backend_of, describe, resolve
    from kernel_gym.executors import make_executor
    from kernel_gym.executors.supervised import DEADLINE
    from kernel_gym.storage.secret import PUBLIC
    from kernel_gym.tasks.small_floats import require_runs_on, runs_on

    with one_line_errors():
        device = resolve(device)
        problems = _problems(suite, task)
        arch = describe(device).arch
        fit = [p for p in problems if runs_on(p, arch)]
        if not fit:
            require_runs_on(problems[0], arch)
        if mutate:
            raise typer.Exit(FAILED if mutation_test_of(fit, json) else 0)
        todo = _not_current(fit, device) if resume else fit
        deadline = backend_of(device).admission_seconds or DEADLINE
        executor = make_executor(
            "local", device=device, workers=workers, deadline=deadline, secret=PUBLIC
        )
    rows: list[Row] = []
    try:
        with executor:
            for group in _rows_of(todo, executor, workers):
                rows += group
    except KeyboardInterrupt:
        note("stopped; to continue, give the same command with --resume")
        raise typer.Exit(INTERRUPTED) from None
    finally:
        rows.sort(key=lambda row: row["id"])
        print_json(rows) if json else _show(rows)
    _note_left_out([p.name for p in problems if p not in fit], len(fit) - len(todo), device)
    if any(row["status"] in ("refused", "not tried") for row in rows):
        raise typer.Exit(FAILED)


def _note_left_out(foreign: list[str], with_verdict: int, device: str) -> None:
    if foreign:
        note(f"left out, {device} has other 8-bit floats: {', '.join(foreign)}")
    if with_verdict:
        note(f"{with_verdict} problems had a verdict already")


def _rows_of(problems: list[Problem], executor: Executor, workers: int) -> Iterator[list[Row]]:
    """Admits problems, keeps the verdicts, and yields the rows of each."""
    from kernel_gym.admission import AdmissionError, admit_all
    from kernel_gym.tasks.verdicts import store_verdict

    steps = admit_all(problems, executor, workers)
    for problem, verdict in track(steps, "admitting", len(problems), console=messages):
        if isinstance(verdict, AdmissionError):
            note(f"not tried: {verdict}")
            yield [{"id": problem.name, "status": "not tried", "reasons": [str(verdict)]}]
            continue
        store_verdict(problem, verdict)
        rows = _rows(problem, verdict)
        for row in rows:
            if row["reasons"]:
                note(f"{row['id']}: {'; '.join(row['reasons'])}")
        yield rows


def _problems(suite: str | None, tasks: list[str] | None) -> list[Problem]:
    from kernel_gym.tasks import get_problem, get_task, load_suite, problem_names

    if suite is None and not tasks:
        return [get_problem(name) for name in problem_names()]
    chosen = [get_task(task_id) for task_id in tasks or ()]
    chosen += load_suite(suite).tasks if suite else ()
    return list({task.problem.name: task.problem for task in chosen}.values())


def _not_current(problems: list[Problem], device: str) -> list[Problem]:
    """Returns the problems that lack a verdict of today's protocol in a mode of the device."""
    from kernel_gym.devices import describe
    from kernel_gym.judge.protocol import PROTOCOL_VERSION
    from kernel_gym.tasks.task import Task, modes_of
    from kernel_gym.tasks.verdicts import stored_verdict

    described = describe(device)
    written = (*described.languages, *described.embedded)

    def current(problem: Problem) -> bool:
        verdict = stored_verdict(problem)
        stored = verdict.devices.get(described.hardware, {}) if verdict else {}
        known = {mode for mode, found in stored.items() if found.protocol == PROTOCOL_VERSION}
        wanted = {m for m in modes_of(problem) if Task(problem, m).written_in in written}
        return wanted <= known

    return [problem for problem in problems if not current(problem)]


def _rows(problem: Problem, verdict: AdmissionVerdict) -> list[Row]:
    """Returns one row for each mode of a verdict on one device."""
    ((device, modes),) = verdict.devices.items()
    return [
        {
            "id": f"{mode}/{problem.name}",
            "device": device,
            "status": str(verdict.status(mode)),
            "head_room": found.head_room,
            "reasons": list(found.refused),
        }
        for mode, found in sorted(modes.items())
    ]


def _show(rows: list[Row]) -> None:
    table = folding_table("task", "status", "head-room", "why", whole=("task", "status"))
    for row in rows:
        room = row.get("head_room")
        status = row["status"]
        style = _STYLE.get(status, "red")
        table.add_row(
            row["id"],
            f"[{style}]{status}[/]",
            "" if room is None else f"{room:.2f}",
            escape("; ".join(row["reasons"])),
        )
    console.print(table)
    counts = {s: sum(row["status"] == s for row in rows) for s in dict.fromkeys(_STYLE)}
    console.print(", ".join(f"{n} {s}" for s, n in counts.items()), highlight=False)
    rooms = [row["head_room"] for row in rows if row.get("head_room")]
    if rooms:
        console.print(f"median head-room: {statistics.median(rooms):.1f}", highlight=False)
