"""All commands in one application of Typer."""

from __future__ import annotations

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
from kernel_gym.commands.common import one_line_errors
from kernel_gym.commands.sim.app import SimCommand, sim

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
