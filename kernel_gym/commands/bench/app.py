"""`kernel-gym bench`: throughput on this machine."""

from __future__ import annotations

import typer

from kernel_gym.commands.bench import gpu as bench_gpu
from kernel_gym.commands.bench.evaluation import evaluation

app = typer.Typer(help="Measure throughput on this machine.", no_args_is_help=True)


@app.callback()
def bench() -> None:
    """Measure throughput on this machine."""


app.command()(evaluation)
app.command()(bench_gpu.timing)
app.command()(bench_gpu.throughput)
