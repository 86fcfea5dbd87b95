"""`kernel-gym admit`: decide which tasks earn their place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.progress import track
from rich.table import Table

from kernel_gym.commands.common import (
    FAILED,
    DeviceOption,
    JsonOption,
    console,
    messages,
    note,
    one_line_errors,
    print_json,
)

if TYPE_CHECKING:
    from kernel_gym.tasks.admission import Verdict
    from kernel_gym.tasks.problem import Problem
    from kernel_gym.tasks.task import Mode

_STYLE = {"admitted": "green", "saturated": "yellow", "refused": "bold red"}


def admit(
    suite: Annotated[str | None, typer.Option("--suite", "-s", help="Tasks of this suite.")] = None,
    task: Annotated[
        list[str] | None, typer.Option("--task", "-t", help="This task; may be repeated.")
    ] = None,
    device: DeviceOption = "sim:gfx942",
    resume: Annotated[
        bool, typer.Option(help="Only problems without a verdict on their present content.")
    ] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Evaluations at one time.")] = 2,
    json: JsonOption = False,
) -> None:
    """Try problems and keep the verdicts beside them. Exit code 1 when one is refused.

    A problem is tried in all its modes at once, whichever of its tasks is named.

    Example: kernel-gym admit --suite quickstart --resume --jobs 2
    """
    from kernel_gym.admission import AdmissionError, admit_all
    from kernel_gym.devices import arch_of, resolve
    from kernel_gym.executors import make_executor
    from kernel_gym.tasks.admission import store_verdict
    from kernel_gym.tasks.small_floats import require_runs_on, runs_on

    with one_line_errors():
        device = resolve(device)
        problems = _problems(suite, task)
        fit = [p for p in problems if runs_on(p, arch_of(device))]
        if not fit:
            require_runs_on(problems[0], arch_of(device))
        todo = [p for p in fit if not (resume and _is_current(p, device))]
        executor = make_executor("local", device=device, workers=jobs)
    rows: list[dict[str, Any]] = []
    with executor:
        steps = admit_all(todo, executor, jobs)
        for problem, found in track(steps, "admitting", len(todo), console=messages):
            if isinstance(found, AdmissionError):
                note(f"not tried: {found}")
                rows.append({"id": problem.name, "status": "not tried", "reasons": [str(found)]})
                continue
            store_verdict(problem, found)
            rows += _rows(problem, found)
    rows.sort(key=lambda row: row["id"])
    print_json(rows) if json else _show(rows)
    if foreign := [p.name for p in problems if p not in fit]:
        note(f"left out, {device} has other 8-bit floats: {', '.join(foreign)}")
    if skipped := len(fit) - len(todo):
        note(f"{skipped} problems had a verdict already")
    if any(row["status"] in ("refused", "not tried") for row in rows):
        raise typer.Exit(FAILED)


def _problems(suite: str | None, tasks: list[str] | None) -> list[Problem]:
    from kernel_gym.tasks import get_problem, get_task, load_suite, problem_names

    if suite is None and not tasks:
        return [get_problem(name) for name in problem_names()]
    chosen = [get_task(task_id) for task_id in tasks or ()]
    chosen += load_suite(suite).tasks if suite else ()
    return list({task.problem.name: task.problem for task in chosen}.values())


def _is_current(problem: Problem, device: str) -> bool:
    from kernel_gym.judge.protocol import PROTOCOL_VERSION
    from kernel_gym.tasks.admission import stored_verdict

    verdict = stored_verdict(problem)
    return (
        verdict is not None and verdict.protocol == PROTOCOL_VERSION and device in verdict.devices
    )


def _rows(problem: Problem, verdict: Verdict) -> list[dict[str, Any]]:
    reasons: dict[Mode, tuple[str, ...]] = {}
    for modes in verdict.devices.values():
        for mode, found in modes.items():
            reasons[mode] = (*reasons.get(mode, ()), *found.refused)
    return [
        {
            "id": f"{mode}/{problem.name}",
            "status": str(verdict.status(mode)),
            "head_room": verdict.head_room(mode),
            "reasons": list(dict.fromkeys(reasons[mode])),
        }
        for mode in sorted(reasons)
    ]


def _show(rows: list[dict[str, Any]]) -> None:
    table = Table()
    for header in ("task", "status", "head-room", "why"):
        table.add_column(header, overflow="fold")
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
