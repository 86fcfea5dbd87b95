"""Random graphs of operators through `torch.compile` on the simulated GPU, beside eager PyTorch."""

from __future__ import annotations

import json
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import torch

    from kernel_gym.programs.simulation import Simulation

MAX_OPERATORS = 7
ROWS, COLUMNS = (1, 7, 64, 256), (64, 100, 512, 1000)
RTOL = {"float32": 1e-4, "float16": 2e-2, "bfloat16": 5e-2}
"""Eager PyTorch rounds between operators and a fused kernel does not."""


def compiled_graphs(
    count: Annotated[int, typer.Option(min=1, help="Graphs.")] = 300,
    seed: Annotated[int, typer.Option(help="Draws the graphs, their sizes and their data.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="A JSON file, with the graphs that are wrong.")
    ] = None,
) -> None:
    """Compile random graphs on the simulated GPU, and compare values and modelled times.

    Example: kernel-gym sim -- python -m benchmarks compiled-graphs --count 20 --out graphs.json
    """
    import torch

    from kernel_gym.programs.simulation import simulation

    gpu = simulation()
    if gpu is None:
        raise typer.BadParameter(
            "no simulated GPU here: put `kernel-gym sim --` before the command"
        )

    draw, start = random.Random(seed), time.process_time()
    rows: list[dict[str, Any]] = []
    torch.manual_seed(seed)
    for number in range(count):
        operators = _operators(draw)
        dtype = draw.choice(sorted(RTOL))
        size = draw.choice(ROWS), draw.choice(COLUMNS)
        x, y = (torch.randn(size, device="cuda").to(getattr(torch, dtype)) for _ in range(2))
        graph = _graph(operators)
        torch._dynamo.reset()
        row: dict[str, Any] = {"operators": operators, "dtype": dtype, "size": size}
        try:
            compiled = torch.compile(graph, dynamic=False)
            error = _error(compiled(x, y), graph(x, y))
        except Exception as failure:  # Inductor raises errors of many kinds
            rows.append(row | {"failed": f"{type(failure).__name__}: {failure}"[:200]})
            continue
        seconds = [_seconds(gpu, call, x, y) for call in (graph, compiled)]
        rows.append(
            row
            | {"right": error <= RTOL[dtype], "error": error, "eager": seconds[0]}
            | {"compiled": seconds[1]}
        )
        typer.echo(f"{number + 1} of {count}: {rows[-1]['right']}")
    summary = _summary(rows) | {"seed": seed, "cpu_seconds": round(time.process_time() - start)}
    wrong = [row for row in rows if not row.get("right")]
    if out is not None:
        out.write_text(json.dumps({**summary, "wrong_graphs": wrong}, indent=1) + "\n")
    typer.echo(json.dumps(summary))


def _operators(draw: random.Random) -> list[str]:
    return [draw.choice(sorted(_steps())) for _ in range(draw.randint(2, MAX_OPERATORS))]


def _steps() -> dict[str, Callable]:
    """Steps of a graph: functions of the value so far and of another tensor of its shape."""
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
        "row_sum": lambda v, y: v + v.sum(-1, keepdim=True) / v.shape[-1],
        "row_maximum": lambda v, y: v - v.amax(-1, keepdim=True),
        "column_mean": lambda v, y: v - v.mean(0, keepdim=True),
    }


def _graph(operators: list[str]) -> Callable:
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


def _seconds(gpu: Simulation, call: Callable, *args: torch.Tensor) -> float:
    before = gpu.seconds
    call(*args)
    return gpu.seconds - before


def _summary(rows: list[dict]) -> dict:
    timed = [row for row in rows if "right" in row]
    return {
        "graphs": len(rows),
        "right": sum(row["right"] for row in timed),
        "failed": len(rows) - len(timed),
        "median_speedup_over_eager": round(
            statistics.median(row["eager"] / row["compiled"] for row in timed), 2
        ),
    }
