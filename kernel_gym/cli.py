"""The command line: `kernel-gym`.

Exit codes: 0 fine, 1 the submission failed (`check`), a call has no plan (`plan`), a claim does not
hold (`referee`), a model is not right with a package (`deploy`), a run is unfinished (`compare`) or
nothing works here (`doctor`), 2 bad input, 130 interrupted. Those of `sim` are in
`kernel_gym/programs/exit_codes.py`.
"""

from __future__ import annotations

import atexit
import gc
import sys
from pathlib import Path
from typing import Annotated

import typer

from kernel_gym.commands import (
    admit,
    agent,
    check,
    compare,
    corpus,
    demo,
    deploy,
    doctor,
    eval,
    exchange,
    exploits,
    imports,
    judges,
    leaderboard,
    mcp,
    new,
    package,
    plan,
    referee,
    replay,
    report,
    rescore,
    serve,
    tasks,
    train,
    workspace,
)
from kernel_gym.commands.bench import app as bench
from kernel_gym.commands.common import BAD_INPUT, note, one_line_errors
from kernel_gym.commands.sim.app import SimCommand, sim
from kernel_gym.extras import missing_extra

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    """Prints the version and ends."""
    if asked:
        from importlib.metadata import version

        print(f"kernel-gym {version('kernel-gym')}")
        raise typer.Exit()


@app.callback()
def common(
    tasks_path: Annotated[
        list[Path] | None,
        typer.Option(help="A folder of further problems, one folder each; may be repeated."),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Optimise GPU kernels: list tasks, check a kernel, evaluate a policy, report on a run."""
    for folder in tasks_path or ():
        from kernel_gym.tasks import add_tasks_path

        with one_line_errors():
            add_tasks_path(folder)


app.command()(doctor.doctor)
app.command()(demo.demo)
app.add_typer(tasks.app, name="tasks")
app.command()(check.check)
app.command()(plan.plan)
app.command()(new.new)
app.command("eval")(eval.evaluate)
app.add_typer(package.app, name="package")
app.command()(deploy.deploy)
app.command()(compare.compare)
app.command()(corpus.corpus)
app.command()(train.train)
app.command()(serve.serve)
app.command()(workspace.workspace)
app.command()(agent.agent)
app.command()(mcp.mcp)
app.command()(exploits.exploits)
app.command()(referee.referee)
app.command()(admit.admit)
app.command()(report.report)
app.command()(leaderboard.leaderboard)
app.command()(rescore.rescore)
app.command()(replay.replay)
app.command()(exchange.export)
app.command("import")(exchange.import_)
app.command()(imports.imports)
app.command("suite-runner")(imports.suite_runner)
app.command("sim", cls=SimCommand)(sim)
app.add_typer(judges.app, name="judges")
app.add_typer(bench.app, name="bench")


def main() -> None:
    """Runs the command line.

    At its end no garbage is searched for: with all libraries loaded that takes 0.7 s.

    Raises:
        ModuleNotFoundError: A module is missing that no extra of the package has.
    """
    atexit.register(gc.freeze)
    try:
        app()
    except ModuleNotFoundError as error:
        text = missing_extra(error)
        if text is None:
            raise
        note(f"error: {text}")
        sys.exit(BAD_INPUT)
