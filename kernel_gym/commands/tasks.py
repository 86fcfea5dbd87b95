"""`kernel-gym tasks`: what there is to solve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from kernel_gym.commands.common import JsonOption, console, one_line_errors, print_json

if TYPE_CHECKING:
    from kernel_gym.tasks import Task

app = typer.Typer()

SuiteOption = Annotated[
    str | None, typer.Option("--suite", "-s", help="Only the tasks of this suite.")
]


@app.callback(invoke_without_command=True)
def tasks(context: typer.Context, json: JsonOption = False) -> None:
    """List tasks, or show one.

    For example:

    kernel-gym tasks list --suite quickstart

    kernel-gym tasks show triton2triton/softmax
    """
    if context.invoked_subcommand is None:
        list_tasks(suite=None, json=json)


@app.command("list")
def list_tasks(suite: SuiteOption = None, json: JsonOption = False) -> None:
    """List every task, or those of a suite.

    Example: kernel-gym tasks list --suite quickstart --json
    """
    from kernel_gym.tasks import get_task, load_suite, suites, task_ids

    with one_line_errors():
        chosen = [get_task(i) for i in task_ids()] if suite is None else load_suite(suite).tasks
    rows = [_facts(task) for task in chosen]
    if json:
        print_json(rows)
        return
    table = Table(title=f"{len(rows)} tasks")
    for header in ("task", "level", "category", "summary"):
        table.add_column(header, no_wrap=header == "task")
    for row in rows:
        table.add_row(row["id"], str(row["level"]), row["category"], row["summary"])
    console.print(table)
    console.print(f"suites: {', '.join(suites())}")


@app.command()
def show(
    task_id: Annotated[str, typer.Argument(metavar="ID", help="For instance hip2hip/rope.")],
    json: JsonOption = False,
) -> None:
    """Show one task: its facts and the prompt that a policy reads.

    Example: kernel-gym tasks show triton2triton/softmax
    """
    from kernel_gym.tasks import get_task, prompt

    with one_line_errors():
        task = get_task(task_id)
    text = prompt(task, "(the facts of the device that evaluates it)")
    if json:
        print_json({**_facts(task), "prompt": text})
        return
    for key, value in _facts(task).items():
        console.print(f"[bold]{key}[/]: {value}", highlight=False)
    console.print()
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _facts(task: Task) -> dict[str, Any]:
    problem = task.problem
    return {
        "id": task.id,
        "language": task.language,
        "level": problem.level,
        "category": problem.category,
        "summary": problem.summary,
        "tags": list(problem.tags),
        "source": problem.source,
    }
