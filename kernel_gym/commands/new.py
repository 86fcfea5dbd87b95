"""`kernel-gym new`: make a task of one's own PyTorch code."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from kernel_gym.commands.common import (
    FAILED,
    DeviceOption,
    JsonOption,
    console,
    messages,
    one_line_errors,
    print_json,
)

if TYPE_CHECKING:
    from kernel_gym.commands.output import Row
    from kernel_gym.imports.authoring.request import TracingRequest
    from kernel_gym.imports.authoring.write import Written

RECORDING_SECONDS = 900.0
"""Seconds of the wall for the tests of one file: an extension takes a minute to build."""
PROGRAM_SUFFIXES = (".hip", ".cu", ".cpp", ".cc", ".cxx", ".c", ".h", ".hpp")
"""Files that are no Python: their launches are not recorded."""


def new(
    target: Annotated[
        str, typer.Argument(help="FILE.py:NAME of a module class or a function; FILE.py to record.")
    ],
    inputs: Annotated[
        str | None, typer.Option(help="FILE.py:NAME of the function that makes the inputs.")
    ] = None,
    shapes: Annotated[
        str | None, typer.Option(help='The inputs instead: "x: float16[batch, 4096]; y: ...".')
    ] = None,
    init: Annotated[
        str | None, typer.Option(help="FILE.py:NAME that returns the arguments of the class.")
    ] = None,
    sizes: Annotated[str, typer.Option(help='Values of sizes: "batch=4 seq=512".')] = "",
    fixed: Annotated[str, typer.Option(help='Sizes that must not vary: "hidden heads".')] = "",
    from_profile: Annotated[
        bool,
        typer.Option("--from-profile", help="Run the target, a script, and list its modules."),
    ] = False,
    record: Annotated[
        str, typer.Option(help='The tests of a file, to record: "pytest test_x.py".')
    ] = "",
    name: Annotated[str | None, typer.Option(help="Name of the problem.")] = None,
    out: Annotated[Path, typer.Option(help="The folder of your problems.")] = Path("my_tasks"),
    device: DeviceOption = "sim:gfx942",
    json: JsonOption = False,
) -> None:
    """Make a task of a PyTorch module or function. Exit code 1 when admission refuses it.

    The code runs in a confined process. What is written is a problem folder that you may edit.
    With --record a file of Triton kernels, or one that builds an extension in HIP, becomes a task:
    its tests run, and their calls are recorded. Its sources stay where they are.

    Examples: kernel-gym new my_model.py:Block --inputs my_model.py:make_inputs
    kernel-gym new my_kernel.py --record "pytest test_my_kernel.py"
    """
    if record:
        _record(Path(target), record, device, json)
        return
    if from_profile:
        _show_profile(Path(target), json)
        return
    from kernel_gym.imports.authoring.tracer import CodeError
    from kernel_gym.imports.authoring.write import write_problem

    with one_line_errors():
        request = _request(target, inputs, shapes, init, sizes, fixed)
        chosen = _name(name or target.rpartition(":")[2], out)
        with messages.status("tracing"):
            try:
                written = write_problem(request, chosen, out, f"your own code, {target}")
            except CodeError as error:
                raise typer.BadParameter(f"{target}: {error}") from None
    rows = _admitted(written, device)
    if json:
        print_json({"name": written.name, "folder": str(written.folder)} | {"tasks": rows})
    else:
        _show(written, rows)
    if any(row["status"] == "refused" for row in rows):
        raise typer.Exit(FAILED)


def _request(
    target: str, inputs: str | None, shapes: str | None, init: str | None, sizes: str, fixed: str
) -> TracingRequest:
    from kernel_gym.imports.authoring.request import (
        TracingRequest,
        parse_shapes,
        parse_sizes,
        read_files,
    )

    if (inputs is None) == (shapes is None):
        raise typer.BadParameter("expected one of --inputs and --shapes")
    names = [one for one in (target, inputs, init) if one is not None]
    files, relative = read_files(names)
    by_name = dict(zip(names, relative, strict=True))
    return TracingRequest(
        files,
        by_name[target],
        by_name[inputs] if inputs else None,
        by_name[init] if init else None,
        parse_shapes(shapes) if shapes else (),
        parse_sizes(sizes),
        frozenset(fixed.replace(",", " ").split()),
    )


def _name(text: str, out: Path) -> str:
    """Returns the name of the problem: lower case with underscores.

    Raises:
        typer.BadParameter: It is no identifier, or taken.
    """
    from kernel_gym.imports.authoring.request import snake
    from kernel_gym.tasks.names import PROBLEMS, names_in

    name = snake(text)
    if not name.isidentifier():
        raise typer.BadParameter(f"--name: found {text!r}, expected an identifier")
    if name in names_in(PROBLEMS):
        raise typer.BadParameter(f"{name!r} is the name of a problem of kernel-gym: give --name")
    if (out / name).exists():
        raise typer.BadParameter(f"{out / name} is there already: remove it, or give --name")
    return name


def _admitted(written: Written, device: str) -> list[Row]:
    """Runs admission on a new problem, keeps the verdict and returns a row for each task."""
    from kernel_gym.admission import AdmissionError, admit
    from kernel_gym.executors import make_executor
    from kernel_gym.storage.secret import PUBLIC
    from kernel_gym.tasks import add_tasks_path, get_problem
    from kernel_gym.tasks.verdicts import store_verdict

    with one_line_errors(), messages.status("admission"):
        add_tasks_path(written.folder.parent)
        problem = get_problem(written.name)
        with make_executor("local", device=device, workers=1, secret=PUBLIC) as executor:
            try:
                verdict = admit(problem, executor)
            except AdmissionError as error:
                raise typer.BadParameter(str(error)) from None
        store_verdict(problem, verdict)
    written.notes += verdict.notes
    ((_, modes),) = verdict.devices.items()
    return [
        {
            "id": f"{mode}/{problem.name}",
            "status": str(verdict.status(mode)),
            "head_room": found.head_room,
            "reasons": list(found.refused),
        }
        for mode, found in sorted(modes.items())
    ]


def _show(written: Written, rows: list[Row]) -> None:
    console.print(f"wrote {written.folder} in {written.seconds:.0f} s", highlight=False)
    for note in written.notes:
        console.print(f"note: {note}", markup=False, highlight=False, soft_wrap=True)
    for row in rows:
        room = f", head-room {row['head_room']:.1f}" if row["head_room"] else ""
        console.print(f"{row['id']}: {row['status']}{room}", highlight=False)
        for reason in row["reasons"]:
            console.print(f"  {escape(reason)}", highlight=False, soft_wrap=True)
    missing = ["formula.py: complete formula_stub.py and rename it, so that the oracle is checked"]
    missing += ["there is no start kernel: baseline.py (Triton) or baseline.hip adds its modes"]
    for text in missing:
        console.print(f"missing: {text}", highlight=False, soft_wrap=True)
    task = rows[0]["id"] if rows else written.name
    parent = written.folder.parent
    console.print(f"next: kernel-gym --tasks-path {parent} tasks show {task}", highlight=False)


def _record(file: Path, command: str, device: str, json: bool) -> None:
    """Makes a task of the calls that the tests of a file make, and shows its verdict."""
    from kernel_gym.imports.authoring.request import snake
    from kernel_gym.imports.bench.import_bench import ImportBench
    from kernel_gym.imports.bench.importing import import_suite
    from kernel_gym.imports.readers.own_files import OPERATION_INSTEAD, OwnReader
    from kernel_gym.tasks.names import OWN_PREFIX

    if file.suffix in PROGRAM_SUFFIXES:
        what = f"{file}: found a program in HIP or C++, and only calls from Python are recorded"
        raise typer.BadParameter(f"{what}; {OPERATION_INSTEAD}")
    if file.suffix != ".py" or not file.is_file():
        raise typer.BadParameter(
            f"{file}: expected a Python file with Triton kernels or load_inline"
        )
    suite = OWN_PREFIX + snake(file.stem).replace("_", "-")
    reader = OwnReader(suite, file.name, command)
    with (
        one_line_errors(),
        messages.status("recording"),
        ImportBench(device, RECORDING_SECONDS) as bench,
    ):
        (step,) = import_suite(reader, file.parent.resolve(), [bench])
    entry = step.entry
    verdict = entry.verdicts.get(device)
    status = str(entry.status(device) or "untried")
    reason = entry.reason or (verdict.reason if verdict else "")
    row: Row = {"task": f"{suite}/{entry.name}", "status": status, "reason": reason}
    row |= {"notes": list(verdict.notes) if verdict else []}
    if json:
        print_json(row)
    else:
        told = [f"{row['task']}: {status}", reason, *(f"note: {note}" for note in row["notes"])]
        if status == "admitted":
            told.append(f"next: kernel-gym check {row['task']} {file} --device {device}")
        for text in filter(None, told):
            console.print(text, markup=False, highlight=False, soft_wrap=True)
    if status != "admitted":
        raise typer.Exit(FAILED)


def _show_profile(script: Path, json: bool) -> None:
    from kernel_gym.imports.authoring.profile import profile_script
    from kernel_gym.imports.authoring.tracer import CodeError

    with one_line_errors(), messages.status("running the script"):
        try:
            classes = profile_script(script)
        except CodeError as error:
            raise typer.BadParameter(f"{script}: {error}") from None
    if json:
        print_json([module.to_json() for module in classes])
        return
    for one in classes:
        text = f"{one.share:6.1%} {one.calls:5d} calls  {one.what}"
        console.print(text, markup=False, highlight=False, soft_wrap=True)
        if one.command:
            console.print(f"        {one.command}", markup=False, highlight=False, soft_wrap=True)
        if one.file:
            console.print(f"        with {one.file} beside the script:", highlight=False)
            text = indent(one.text, " " * 10)
            console.print(text, markup=False, highlight=False, soft_wrap=True)
        if one.advice:
            console.print(f"        {one.advice}", markup=False, highlight=False, soft_wrap=True)
