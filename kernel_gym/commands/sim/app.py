"""`kernel-gym sim`: run your own command or file with a simulated GPU and profile its kernels."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperCommand

from kernel_gym.commands.common import (
    BAD_INPUT,
    JsonOption,
    messages,
    note,
    one_line_errors,
    print_json,
)
from kernel_gym.commands.sim import show
from kernel_gym.errors import InputError

if TYPE_CHECKING:
    from typer._click import Context

    from kernel_gym.programs.results import ProgramResult, Summary
    from kernel_gym.simulated_rocm.settings import SimSettings

DEVICE = "sim:gfx942"
AuditOption = Annotated[
    bool, typer.Option("--audit", help="Look for races and missing waits; found: exit 121.")
]
BoundsOption = Annotated[
    str, typer.Option(help="warn: accesses just outside an allocation are only reported.")
]
COMMAND = "kernel_gym.command"
"""The key of the words behind `--` in the context."""
DOCUMENTS = "processes"
"""The folder within --out for the documents of the processes."""


class SimCommand(TyperCommand):
    """Keeps the words behind `--` apart: they are a command, or arguments of the file before."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Parses what comes before `--`."""
        if "--" in args:
            place = args.index("--")
            ctx.meta[COMMAND] = args[place + 1 :]
            args = args[:place]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Context) -> list[str]:
        """Returns the words of the usage line."""
        return ["[OPTIONS]", "FILE [ARGUMENTS]... | [OPTIONS] -- COMMAND..."]


def sim(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(help="A Triton script or a HIP program, run confined.", show_default=False),
    ] = None,
    arguments: Annotated[list[str] | None, typer.Argument(help="For the program.")] = None,
    device: Annotated[str, typer.Option("--device", "-d", help="A simulated one.")] = DEVICE,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Host threads; by default one a core.")
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(min=1, help="Seconds for it all; by default 600 for a FILE, else none."),
    ] = None,
    confined: Annotated[
        bool, typer.Option("--confined", help="For untrusted code: -- FILE sees no other file.")
    ] = False,
    audit: AuditOption = False,
    bounds: BoundsOption = "fault",
    out: Annotated[
        Path | None, typer.Option(file_okay=False, help="A folder for results.json, index.html.")
    ] = None,
    report: Annotated[
        list[Path] | None,
        typer.Option(help="With --audit: a file of the findings, .sarif or .xml (JUnit)."),
    ] = None,
    suppressions: Annotated[
        Path | None, typer.Option(help="With --audit: a TOML file of known findings.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Run a command, or one file, with a simulated GPU and print the profile of its kernels.

    A COMMAND runs as without kernel-gym, with your files, and every process of it finds the GPU:
    Python with PyTorch and Triton, and built HIP programs. A FILE runs confined and sees no file
    but its own. Times are modelled, not measured.

    Exit codes: 120 a kernel faulted, 121 findings of --audit, 124 not done in time, 125 a failure
    of kernel-gym, 126 or 127 the command cannot be run or is not there, else the program's own.

    Examples: kernel-gym sim -- python -m pytest tests/, kernel-gym sim my_softmax.py --json
    """
    from kernel_gym.programs.exit_codes import exit_code
    from kernel_gym.simulated_rocm.settings import SimSettings

    command = context.meta.get(COMMAND)
    with one_line_errors():
        finish = _reporting(audit, report or [], suppressions)
        settings = SimSettings(device=device, audit=audit, bounds=bounds, threads=threads)
        if file is None and command and confined:
            file, arguments, command = _confined_file(command)
        if file is not None:
            words = [*(arguments or []), *(command or [])]
            result = _run_file(file, words, settings, timeout)
        elif command:
            result = _run_words(command, settings, timeout, out, json)
        else:
            raise InputError("found neither a file nor a command, expected -- COMMAND or FILE")
        finish(result)
        if out is not None:
            _write(out, result)
    if json:
        print_json(result)
    else:
        show.show(result)
    show.note_end(result, json)
    raise typer.Exit(exit_code(result, audit))


def _confined_file(command: list[str]) -> tuple[Path, list[str], None]:
    """Returns the file and the arguments of a command of the form `[python] FILE ARGUMENTS`."""
    interpreter = Path(command[0]).name.startswith("python") and len(command) > 1
    words = command[1:] if interpreter else command
    if words[0].startswith("-"):
        raise InputError(f"--confined: found {words[0]}, expected -- FILE or -- python FILE")
    return Path(words[0]), words[1:], None


def _run_file(
    file: Path, arguments: list[str], settings: SimSettings, timeout: float | None
) -> ProgramResult:
    from kernel_gym.programs.confined import LANGUAGES, TIMEOUT, run_program
    from kernel_gym.symbols import plain_name

    if not file.is_file():
        raise InputError(f"{file}: no such file")
    language = LANGUAGES.get(file.suffix)
    if language is None:
        raise InputError(f"found {file.name}, expected {', '.join(LANGUAGES)}")
    try:
        source = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{file.name} is not UTF-8 text") from None
    header: dict[str, object] = {
        "name": file.name,
        "language": language,
        "source": source,
        "arguments": arguments,
    }
    with messages.status(f"running {file.name} on {settings.device}") as status:

        def watch(summary: Summary) -> None:
            last = plain_name(next(reversed(summary.kernels), ""))
            status.update(f"{summary.launches} launches, last of a new kernel {last}")

        result = run_program(header, settings, timeout or TIMEOUT, watch)
    for record in [*result["faults"], *result["findings"]]:
        for key in ("source", "other_source"):  # the program knows the file's name alone
            own, _, line = record[key].rpartition(":")
            record[key] = f"{file.resolve()}:{line}" if own == file.name else record[key]
    return result


def _run_words(
    words: list[str], settings: SimSettings, timeout: float | None, out: Path | None, json: bool
) -> ProgramResult:
    from dataclasses import replace

    from kernel_gym.programs.command import CommandError, run_command
    from kernel_gym.programs.results import read_results
    from kernel_gym.simulated_rocm.settings import MAX_LAUNCH_SECONDS

    with tempfile.TemporaryDirectory(prefix="kernel-gym-") as temporary:
        folder = Path(temporary) if out is None else _empty(out / DOCUMENTS)
        limit = min(timeout, MAX_LAUNCH_SECONDS) if timeout else MAX_LAUNCH_SECONDS
        settings = replace(settings, results=folder.resolve(), launch_limit=limit)
        try:
            ended = run_command(words, settings, timeout, output=2 if json else None)
        except CommandError as error:
            note(f"error: {error}")
            raise typer.Exit(error.code) from None
        summary = read_results(folder).to_json()
    how = {"command": words, "status": ended.status, "timed_out": ended.timed_out}
    return {"device": settings.device, **summary, **how, "host_seconds": ended.seconds}


def _reporting(
    audit: bool, reports: list[Path], suppressions: Path | None
) -> Callable[[ProgramResult], None]:
    """Returns a function that marks known findings and writes the reports of a run."""
    from kernel_gym.programs.audit_findings import repository_root
    from kernel_gym.programs.suppressions import read_suppressions, suppress
    from kernel_gym.report.audit_report import report_writer

    if not audit and (reports or suppressions):
        raise InputError("--report and --suppressions need --audit")
    known = read_suppressions(suppressions) if suppressions else []
    writers, root = [report_writer(path) for path in reports], repository_root(Path())

    def finish(result: ProgramResult) -> None:
        for unused in suppress(result, known, root):
            note(f"unused suppression: {unused.reason}")
        for write in writers:
            write(result, root)

    return finish


def _empty(folder: Path) -> Path:
    """Returns a folder without results of an earlier run."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise InputError(f"--out: {folder} holds results of another run; name a new folder")
    return folder


def _write(out: Path, result: ProgramResult) -> None:
    """Writes the results as JSON and as a page."""
    import json

    from kernel_gym.report.program import program_page

    out.mkdir(parents=True, exist_ok=True)
    (out / "results.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    (out / "index.html").write_text(program_page(result), encoding="utf-8")


__all__ = ["BAD_INPUT", "SimCommand", "sim"]
