"""Random graphs of operators through `torch.compile` on the simulated GPU, beside eager PyTorch."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from benchmarks.figures import Subject
from benchmarks.renewal import NewEntry, entry_maker, rounded, store
from kernel_gym.commands.common import one_line_errors
from kernel_gym.errors import InputError
from kernel_gym.records import Record
from kernel_gym.sim.constants import TIMING_MODEL_VERSION
from kernel_gym.storage.json_lines import append_line, drop_cut_off, read_lines

if TYPE_CHECKING:
    import torch

    from kernel_gym.programs.simulation import Simulation

SUBJECT = "compiled-graphs"
MAX_OPERATORS = 7
ROWS, COLUMNS = (1, 7, 64, 256), (64, 100, 512, 1000)
RTOL = {"float32": 1e-4, "float16": 2e-2, "bfloat16": 5e-2}
"""Eager PyTorch rounds between operators and a fused kernel does not."""


class GraphRow(Record):
    """One random graph: what it is, whether its values are right, and its two modelled times."""

    number: int
    seed: int
    timing_model: str
    operators: tuple[str, ...]
    dtype: str
    size: tuple[int, int]
    error: float | None = None
    eager: float | None = None
    compiled: float | None = None
    failed: str = ""
    cpu_seconds: float = 0.0

    @property
    def right(self) -> bool:
        """Whether the compiled graph gives eager PyTorch's values."""
        return self.error is not None and self.error <= RTOL[self.dtype]


def compiled_graphs(
    out: Annotated[Path, typer.Argument(help="A file of JSON lines, which is continued.")],
    count: Annotated[int, typer.Option(min=1, help="Graphs in all.")] = 300,
    more: Annotated[
        int | None, typer.Option(min=1, help="Run at most so many graphs now, of those left.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Draws the graphs, their sizes and their data.")] = 0,
) -> None:
    """Compile random graphs on the simulated GPU, and compare values and modelled times.

    The figures are stored when all graphs are there.

    Example: kernel-gym sim -- python -m benchmarks compiled-graphs graphs.jsonl --more 50
    """
    from kernel_gym.programs.simulation import simulation

    gpu = simulation()
    if gpu is None:
        raise typer.BadParameter(
            "no simulated GPU here: put `kernel-gym sim --` before the command"
        )
    with one_line_errors():
        drop_cut_off(out)
        rows = [row for row in read_lines(out, GraphRow) if row.number < count]
        if any((row.seed, row.timing_model) != (seed, TIMING_MODEL_VERSION) for row in rows):
            raise InputError(f"{out} has graphs of another seed or timing model")
        known = {row.number for row in rows}
        for number in [n for n in range(count) if n not in known][:more]:
            rows.append(_run(gpu, number, seed))
            append_line(out, rows[-1])
            typer.echo(f"{len(rows)} of {count}: {rows[-1].failed or rows[-1].right}")
        if len(rows) == count:
            store(SUBJECT, figures(rows, entry_maker(SUBJECT)))


def _run(gpu: Simulation, number: int, seed: int) -> GraphRow:
    """Runs one graph. Its number and the seed alone decide what it is."""
    import torch

    draw, start = random.Random(f"{seed} {number}"), time.process_time()
    torch.manual_seed(draw.getrandbits(32))
    row = GraphRow(
        number=number,
        seed=seed,
        timing_model=TIMING_MODEL_VERSION,
        operators=tuple(_operators(draw)),
        dtype=draw.choice(sorted(RTOL)),
        size=(draw.choice(ROWS), draw.choice(COLUMNS)),
    )
    kind = getattr(torch, row.dtype)
    x, y = (torch.randn(row.size, device="cuda").to(kind) for _ in range(2))
    graph = _graph(row.operators)
    torch._dynamo.reset()
    try:
        compiled = torch.compile(graph, dynamic=False)
        update: dict[str, Any] = {"error": _error(compiled(x, y), graph(x, y))}
        update |= {
            "eager": modelled_seconds(gpu, graph, x, y),
            "compiled": modelled_seconds(gpu, compiled, x, y),
        }
    except Exception as failure:  # Inductor raises errors of many kinds
        update = {"failed": f"{type(failure).__name__}: {failure}"[:200]}
    return row.model_copy(update={**update, "cpu_seconds": time.process_time() - start})


def figures(rows: Sequence[GraphRow], new_entry: NewEntry) -> Subject:
    """Returns the figures of graphs.

    Args:
        rows: The graphs.
        new_entry: Makes an entry of this subject.
    """
    ratios = [row.eager / row.compiled for row in rows if row.eager and row.compiled]
    command = f"kernel-gym sim -- python -m benchmarks compiled-graphs FILE --count {len(rows)}"
    right = new_entry(
        id="compiled-graphs-right",
        metric="Random graphs of 2 to 7 operators whose compiled values are those of eager PyTorch",
        value=sum(row.right for row in rows),
        unit=f"of {len(rows)}",
        command=command,
    )
    speedup = new_entry(
        id="compiled-graphs-speedup",
        metric="Eager time divided by the time of Inductor's kernels, median of these graphs",
        value=rounded(statistics.median(ratios), 1),
        unit="times",
        clock="modelled",
        command=command,
        note=f"With version {rows[0].timing_model} of the timing model. The run took "
        f"{sum(row.cpu_seconds for row in rows):.0f} processor seconds.",
    )
    return Subject(title="torch.compile on the simulated GPU", entries=(right, speedup))


def _operators(draw: random.Random) -> list[str]:
    return [draw.choice(sorted(_steps())) for _ in range(draw.randint(2, MAX_OPERATORS))]


def single_operators() -> dict[str, Callable]:
    """Operators of eager PyTorch whose result has the shape of their two tensors."""
    import torch
    from torch.nn import functional

    return {
        "relu": lambda v, y: functional.relu(v),
        "gelu": lambda v, y: functional.gelu(v),
        "silu": lambda v, y: functional.silu(v),
        "sigmoid": lambda v, y: v.sigmoid(),
        "tanh": lambda v, y: v.tanh(),
        "softplus": lambda v, y: functional.softplus(v),
        "add": lambda v, y: v + y,
        "multiply": lambda v, y: v * y,
        "maximum": lambda v, y: torch.maximum(v, y),
        "softmax": lambda v, y: v.softmax(-1),
        "log_softmax": lambda v, y: v.log_softmax(-1),
        "layer_norm": lambda v, y: functional.layer_norm(v, v.shape[-1:]),
        "rms_norm": lambda v, y: functional.rms_norm(v, v.shape[-1:]),
    }


def _steps() -> dict[str, Callable]:
    """Steps of a graph: functions of the value so far and of another tensor of its shape."""
    return single_operators() | {
        "row_sum": lambda v, y: v + v.sum(-1, keepdim=True) / v.shape[-1],
        "row_maximum": lambda v, y: v - v.amax(-1, keepdim=True),
        "column_mean": lambda v, y: v - v.mean(0, keepdim=True),
    }


def _graph(operators: Sequence[str]) -> Callable:
    steps = [_steps()[name] for name in operators]

    def graph(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        for step in steps:
            x = step(x, y)
        return x

    return graph


def _error(answer: torch.Tensor, expected: torch.Tensor) -> float:
    """Returns the largest difference, relative to the largest expected value."""
    scale = expected.double().abs().max().clamp(min=1.0)
    return float((answer.double() - expected.double()).abs().max() / scale)


def modelled_seconds(gpu: Simulation, call: Callable, *args: torch.Tensor) -> float:
    """Returns the modelled seconds of one call on the simulated GPU."""
    before = gpu.seconds
    call(*args)
    return gpu.seconds - before
