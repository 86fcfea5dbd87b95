"""The command line: `kernel-gym`.

Exit codes: 0 fine, 1 the submission failed (`check`) or nothing works here (`doctor`), 2 bad input,
130 interrupted.
"""

from __future__ import annotations

import typer

from kernel_gym.commands import (
    bench,
    check,
    doctor,
    eval,
    exploits,
    replay,
    report,
    rescore,
    tasks,
    train,
)

app = typer.Typer(
    help="Optimise GPU kernels: list tasks, check a kernel, evaluate a policy, report on a run.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command()(doctor.doctor)
app.add_typer(tasks.app, name="tasks")
app.command()(check.check)
app.command("eval")(eval.evaluate)
app.command()(train.train)
app.command()(exploits.exploits)
app.command()(report.report)
app.command()(rescore.rescore)
app.command()(replay.replay)
app.add_typer(bench.app, name="bench")


def main() -> None:
    """Runs the command line."""
    app()
