"""`kernel-gym bench`: throughput on this machine, as ratios."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, Any, Protocol

import typer
from rich.progress import track
from rich.table import Table

from kernel_gym.commands.bench import gpu as bench_gpu
from kernel_gym.commands.bench.evaluation import evaluation
from kernel_gym.commands.common import (
    FAILED,
    DeviceOption,
    ExecutorOption,
    JsonOption,
    TaskOption,
    console,
    messages,
    note,
    one_line_errors,
    print_json,
)

app = typer.Typer(help="Measure throughput on this machine.", no_args_is_help=True)
NUM_ENVS = 8


@app.callback()
def bench() -> None:
    """Measure throughput on this machine."""


@app.command()
def envs(
    task: TaskOption = "triton2triton/layer_norm",
    steps: Annotated[int, typer.Option(min=8, help="Submissions each way.")] = 64,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Of the vector env; by default as many as fit.")
    ] = None,
    executor: ExecutorOption = "local",
    device: DeviceOption = "auto",
    json: JsonOption = False,
) -> None:
    """Measure the steps a second of one env, of eight in sequence, and of a vector env of eight.

    Each submission is the task's own kernel with a new comment, so no result is cached. Each way is
    warmed up by one step of all its envs.

    Example: kernel-gym bench envs --steps 16
    """
    import gymnasium

    import kernel_gym  # noqa: F401
    from kernel_gym.tasks import get_task

    with one_line_errors():
        chosen = get_task(task)
        options: dict[str, Any] = {"task": task, "device": device, "max_turns": 1_000_000}
        sequential = gymnasium.make_vec(
            "KernelOpt-v0", NUM_ENVS, vectorization_mode="sync", **options
        )
        vector = gymnasium.make_vec(
            "KernelOpt-v0", NUM_ENVS, executor=executor, workers=workers, **options
        )
        single = gymnasium.make("KernelOpt-v0", **options)
    kernel = chosen.kernel_source
    comment = "#" if chosen.language == "triton" else "//"
    numbers = iter(range(10**9))

    def source() -> str:
        return f"{kernel}\n{comment} {next(numbers)}\n"

    ways: dict[str, tuple[Playable, int]] = {
        "one env": (single, 1),
        "eight in sequence": (sequential, NUM_ENVS),
        f"vector env, {executor}": (vector, NUM_ENVS),
    }
    rates = _rates(ways, steps // NUM_ENVS, source)
    for env, _ in ways.values():
        env.close()
    _show(rates, json)


def _rates(
    ways: dict[str, tuple[Playable, int]], rounds: int, source: Callable[[], str]
) -> dict[str, float]:
    """Returns steps per second of each way. The ways alternate, so that other load affects all."""
    seconds = dict.fromkeys(ways, 0.0)
    for env, width in ways.values():
        env.reset(seed=0)
        _step(env, width, source)
    for _ in track(range(rounds), "measuring", console=messages, transient=True):
        for name, (env, width) in ways.items():
            start = time.perf_counter()
            for _ in range(NUM_ENVS // width):
                _step(env, width, source)
            seconds[name] += time.perf_counter() - start
    return {name: rounds * NUM_ENVS / spent for name, spent in seconds.items()}


class Playable(Protocol):
    """One environment or a vector of them."""

    def reset(self, *, seed: int) -> object:
        """Starts an episode."""

    def step(self, action: object, /) -> tuple[Any, ...]:
        """Plays one step."""

    def close(self) -> None:
        """Ends the episodes."""


def _step(env: Playable, width: int, source: Callable[[], str]) -> None:
    """Makes one step. It must pass, because a failure is fast and would distort the figure."""
    info = env.step(source() if width == 1 else tuple(source() for _ in range(width)))[4]
    outcomes = {info["outcome"]} if width == 1 else set(info["outcome"])
    if outcomes != {"passed"}:
        note(f"error: a submission did not pass: {', '.join(sorted(outcomes - {'passed'}))}")
        raise typer.Exit(FAILED)


def _show(rates: dict[str, float], json: bool) -> None:
    first = next(iter(rates.values()))
    ratios = {name: rate / first for name, rate in rates.items()}
    if json:
        print_json({"steps_per_second": rates, "ratio": ratios})
        return
    table = Table()
    for header in ("", "steps a second", "over one env"):
        table.add_column(header, justify="left" if not header else "right")
    for name, rate in rates.items():
        table.add_row(name, f"{rate:.2f}", f"{ratios[name]:.2f}x")
    console.print(table)


app.command()(evaluation)
app.command()(bench_gpu.timing)
app.command()(bench_gpu.throughput)
