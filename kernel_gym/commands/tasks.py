"""`kernel-gym tasks`: list and show tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from kernel_gym.commands.common import (
    DeviceOption,
    JsonOption,
    OptionalSuiteOption,
    SuiteOption,
    TaskArgument,
    TasksOption,
    console,
    one_line_errors,
    print_json,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kernel_gym.commands.output import Row
    from kernel_gym.tasks import Task

app = typer.Typer()

HARBOR = "harbor"
"""The format with one folder a task."""
ROOMY = 110
"""Width of a terminal, in columns, that shows all facts of a task on one line."""

CategoryOption = Annotated[
    list[str] | None, typer.Option("--category", help="Only of this category; may be repeated.")
]
LevelOption = Annotated[
    list[int] | None, typer.Option("--level", help="Only of this level, 1 to 5; may be repeated.")
]
ModeOption = Annotated[
    list[str] | None, typer.Option("--mode", help="Only in this mode; may be repeated.")
]
FamilyOption = Annotated[
    list[str] | None,
    typer.Option("--family", help="Only of this family of models; may be repeated."),
]
StatusOption = Annotated[
    list[str] | None,
    typer.Option("--status", help="Only admitted, saturated, refused or unknown ones."),
]


@app.callback(invoke_without_command=True)
def tasks(context: typer.Context, json: JsonOption = False) -> None:
    """List tasks, or show one.

    For example:

    kernel-gym tasks list --category Loss --mode torch2triton

    kernel-gym tasks show triton2triton/softmax
    """
    if context.invoked_subcommand is None:
        list_tasks(json=json)


@app.command("list")
def list_tasks(
    suite: OptionalSuiteOption = None,
    category: CategoryOption = None,
    level: LevelOption = None,
    mode: ModeOption = None,
    family: FamilyOption = None,
    status: StatusOption = None,
    json: JsonOption = False,
) -> None:
    """List every task, those of a suite, or those that fit all filters.

    Example: kernel-gym tasks list --suite quickstart --level 1 --json
    """
    from kernel_gym.tasks import get_task, load_suite, suites, task_ids
    from kernel_gym.tasks.suite import Rule

    with one_line_errors():
        everything = [get_task(i) for i in task_ids()] if suite is None else load_suite(suite).tasks
        wanted = {"category": category, "mode": mode, "family": family, "status": status}
        for key, values in wanted.items():
            _require_known(key, values or ())
        given = {key: tuple(values or ()) for key, values in wanted.items()}
        rule = Rule.model_validate({**given, "level": tuple(level or ())})
    chosen = [task for task in everything if rule.chooses(task)]
    rows = [_facts(task) for task in chosen]
    if json:
        print_json(rows)
        return
    console.print(_table(rows))
    reasons = [row["missing"] for row in rows if row["missing"]]
    for reason in dict.fromkeys(reasons):
        text = f"{reasons.count(reason)} tasks cannot be evaluated here: {reason}"
        console.print(text, highlight=False, markup=False, soft_wrap=True)
    console.print(f"suites: {', '.join(suites())}")


def _table(rows: list[Row]) -> Table:
    """Returns one row for each task; a narrow terminal gets fewer columns."""
    left_out = ("level", "category") if console.width < ROOMY else ()
    table = Table(
        title=f"{len(rows)} tasks; head-room is baseline over roofline time",
        box=None,
        padding=(0, 1, 0, 0),
    )
    for row in rows:
        room = "" if row["head_room"] is None else f"{row['head_room']:.1f}"
        size = "x".join(map(str, row["sizes"]["full"][0]["dims"].values()))
        cells = {
            "task": row["id"],
            "level": str(row["level"]),
            "category": row["category"],
            "status": row["status"],
            "head-room": room,
            "typical size": size,
        }
        kept = {header: cell for header, cell in cells.items() if header not in left_out}
        if not table.columns:
            for header in kept:
                table.add_column(header, overflow="fold", no_wrap=header in ("task", "status"))
        table.add_row(*kept.values())
    return table


@app.command()
def show(
    task_id: TaskArgument,
    device: DeviceOption = "sim:gfx942",
    json: JsonOption = False,
) -> None:
    """Show one task: its facts, the prompt that a policy reads, baseline and reference.

    Example: kernel-gym tasks show triton2triton/softmax
    """
    from kernel_gym.devices import describe
    from kernel_gym.tasks import get_task, prompt, train_workloads

    with one_line_errors():
        task = get_task(task_id)
        described = describe(device)
        workloads = train_workloads(task.problem, described.scale)
        text = prompt(
            task, described.facts, workloads, described.spec.arch, embedded=described.embedded
        )
    reference = task.reference_source
    baseline = task.baseline_source or "# eager PyTorch: the reference below\n"
    parts = {"prompt": text, "baseline": baseline, "reference": reference}
    if json:
        print_json({**_facts(task), **parts})
        return
    for key, value in _facts(task).items():
        if key != "sizes" and (key, value) != ("missing", ""):
            console.print(f"[bold]{key}[/]: {escape(str(value))}", highlight=False)
    for title, part in parts.items():
        console.rule(title)
        console.print(part, markup=False, highlight=False, soft_wrap=True)


@app.command()
def export(
    out: Annotated[
        Path, typer.Option(help="A file: .parquet, or .jsonl for JSON lines; a folder for harbor.")
    ],
    form: Annotated[
        str, typer.Option("--format", help="verl, messages, skyrl, kernelbench or harbor.")
    ] = "verl",
    suite: SuiteOption = "quickstart",
    device: DeviceOption = "sim:gfx942",
) -> None:
    """Write the prompts of tasks as a dataset that a trainer reads, or one folder a task (harbor).

    Example: kernel-gym tasks export --format verl --suite quickstart --out prompts.parquet
    """
    from kernel_gym.exchange.files import write_rows
    from kernel_gym.exchange.prompts import PROMPT_FORMATS, prompt_rows
    from kernel_gym.tasks import UnknownName, load_suite

    with one_line_errors():
        if form == HARBOR:
            _export_harbor(out, suite, device)
            return
        if form not in PROMPT_FORMATS:
            raise UnknownName("format", form, (*PROMPT_FORMATS, HARBOR))
        rows = prompt_rows(load_suite(suite).tasks, form, device)
        write_rows(out, rows)
    console.print(f"{len(rows)} rows: {out}", highlight=False, soft_wrap=True)


def _export_harbor(out: Path, suite: str, device: str) -> None:
    """Writes the tasks of a suite as folders for Harbor."""
    from kernel_gym.agents.harbor import write_harbor
    from kernel_gym.tasks import load_suite

    folders = write_harbor(load_suite(suite).tasks, out, device)
    console.print(f"{len(folders)} tasks: {out}", highlight=False, soft_wrap=True)


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="The name of the problem, such as my_softmax.")],
    folder: Annotated[Path, typer.Option(help="The folder of problem folders.")] = Path("problems"),
) -> None:
    """Make the folder of a new problem: a small, complete one to rewrite.

    Example: kernel-gym tasks new my_softplus --folder my_problems
    """
    from kernel_gym.tasks.new_problem import new_problem

    with one_line_errors():
        paths = new_problem(name, folder)
    for path in paths:
        console.print(str(path), markup=False, highlight=False, soft_wrap=True)
    text = f"kernel-gym --tasks-path {folder} tasks show triton2triton/{name}"
    console.print(f"next: {text}", markup=False, highlight=False, soft_wrap=True)


@app.command()
def bounds(
    task: TasksOption = None,
    scale: Annotated[str, typer.Option(help="sim or full: the sizes of workloads.")] = "sim",
    draws: Annotated[int, typer.Option(min=1, help="Evaluations of each problem.")] = 100,
) -> None:
    """Print how often a kernel for sizes up to twice the train sizes is caught, as Markdown.

    Example: kernel-gym tasks bounds --task triton2triton/rms_norm --draws 20
    """
    from kernel_gym.tasks import UnknownName, get_problem, get_task, problem_names
    from kernel_gym.tasks.bounded import bounded_kernels, bounds_table
    from kernel_gym.tasks.problem import Scale

    with one_line_errors():
        if scale not in set(Scale):
            raise UnknownName("scale", scale, [*Scale])
        chosen = {get_task(task_id).problem.name: None for task_id in task or ()}
        problems = [get_problem(name) for name in chosen or problem_names()]
        rows = [row for p in problems for row in bounded_kernels(p, Scale(scale), draws)]
    print(bounds_table(rows))


def _require_known(key: str, values: Iterable[str]) -> None:
    """Raises UnknownName for a filter that no task can match."""
    from kernel_gym.tasks import CATEGORIES, Mode, UnknownName
    from kernel_gym.tasks.models import FAMILIES
    from kernel_gym.tasks.status import Status

    known = {"category": CATEGORIES, "mode": [*Mode], "family": FAMILIES, "status": [*Status]}[key]
    for value in values:
        if value not in known:
            raise UnknownName(key, value, map(str, known))


def _facts(task: Task) -> Row:
    from kernel_gym.tasks.embedded import missing_package
    from kernel_gym.tasks.verdicts import status_of, stored_verdict

    problem = task.problem
    verdict = stored_verdict(problem)
    devices = verdict.devices if verdict else {}
    return {
        "id": task.id,
        "language": task.written_in,
        "level": problem.level,
        "category": problem.category,
        "summary": problem.summary,
        "tags": list(problem.tags),
        "source": problem.source,
        "status": str(status_of(task)),
        "missing": missing_package(task.extra),
        "head_room": verdict.head_room(task.mode) if verdict else None,
        "head_room_by_device": {
            name: modes[task.mode].head_room
            for name, modes in devices.items()
            if task.mode in modes
        },
        "sizes": {
            str(scale): [
                {"dims": dict(d), "bytes": problem.bytes(d), "flops": problem.flops(d)}
                for d in points
            ]
            for scale, points in problem.train.items()
        },
    }
