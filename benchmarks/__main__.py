"""`python -m benchmarks`: commands for the developers of kernel-gym, run from a checkout."""

from __future__ import annotations

import typer

from benchmarks import (
    compiled_graphs,
    compiled_tasks,
    evaluation_cost,
    installation,
    language_cost,
    leaderboard,
    operator_kernels,
    operators,
    page,
    paper,
    recording,
    renewal,
    scale,
    tasks_page,
    writer,
    writer_arms,
    writer_inductor,
    writer_keys,
    writer_retries,
)
from benchmarks.clock.command import clock
from benchmarks.outside import app as outside
from benchmarks.outside import arena_page, findings
from benchmarks.simulator import app as simulator
from benchmarks.simulator import draws, gluon_ladder, transposes

app = typer.Typer(help="Measure kernel-gym itself.", no_args_is_help=True)


@app.callback()
def benchmarks() -> None:
    """Measure kernel-gym itself: its simulator, its tasks, and programs of others."""


app.command()(page.table)
app.command()(renewal.renew)
app.command()(tasks_page.tasks)
app.command()(outside.outside)
app.command("audit-findings")(findings.audit_findings_page)
app.command("arena-flydsl")(arena_page.arena_flydsl)
app.command()(simulator.simulator)
app.command()(simulator.ladders)
app.command()(simulator.record)
app.command()(clock)
app.command()(transposes.transposes)
app.command()(gluon_ladder.gluon_ladder)
app.command()(draws.draws)
app.command()(operators.operators)
app.command()(operator_kernels.operator_kernels)
app.command()(scale.scale)
app.command()(compiled_graphs.compiled_graphs)
app.command()(compiled_tasks.compiled_tasks)
app.command()(evaluation_cost.evaluation_cost)
app.command()(language_cost.language_cost)
app.command()(leaderboard.leaderboard)
app.command()(paper.paper)
app.command()(recording.recording)
app.command()(installation.installation)
app.command()(writer.writer)
app.command()(writer_arms.writer_arms)
app.command()(writer_inductor.writer_inductor)
app.command()(writer_keys.writer_keys)
app.command()(writer_retries.writer_retries)

if __name__ == "__main__":
    app()
