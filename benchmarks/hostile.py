"""`python -m benchmarks hostile`: how hostile and hanging submissions slow the others down."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from kernel_gym.commands.common import (
    FAILED,
    DeviceOption,
    ExecutorOption,
    JsonOption,
    console,
    executor_arguments,
    note,
    one_line_errors,
    print_json,
)
from kernel_gym.commands.exploits import SUITE

if TYPE_CHECKING:
    from kernel_gym.executors import EvaluationRequest
    from kernel_gym.exploits.loader import Exploit
    from kernel_gym.records import Evaluation

SHARE = 0.3
"""Share of hostile submissions."""


@dataclass(frozen=True)
class Played:
    """One series of episodes.

    Attributes:
        outcomes: How many ended how.
        lost: Episodes without a result, or on which the machine failed.
        seconds: From the first submission to the last result.
        limits: Seconds in which a worker waited for a time limit to pass.
        without_limits: The first without the second, which all workers share.
    """

    outcomes: dict[str, int]
    lost: int
    seconds: float
    limits: float
    without_limits: float


def hostile(
    count: Annotated[int, typer.Option(min=10, help="Episodes each way.")] = 100,
    workers: Annotated[int | None, typer.Option(min=1, help="By default as many as fit.")] = None,
    executor: ExecutorOption = "local",
    device: DeviceOption = "auto",
    suite: Annotated[Path, typer.Option(help="The folder of exploit files.")] = SUITE,
    json: JsonOption = False,
) -> None:
    """Episodes of which 30 % are hostile or hang, and as many honest ones on the same tasks.

    The hostile ones are drawn evenly from the exploit suite; in the honest series each is replaced
    by its task's own kernel. Exit code 1 when an episode is lost.

    Example: python -m benchmarks hostile --count 20
    """
    from kernel_gym.devices import resolve
    from kernel_gym.executors import make_executor

    with one_line_errors():
        device = resolve(device)
        honest, mixed = _series(suite, device, count)
        arguments = executor_arguments(executor, device, 0, workers)
        pool = make_executor(executor, **arguments)
    with pool:
        first = {request.task: request for request in honest}
        list(pool.results(replace(r, seed=2 * count) for r in first.values()))  # paid for once
        series = {"honest": _play(pool, honest), "hostile": _play(pool, mixed)}
    ratio = series["hostile"].without_limits / series["honest"].without_limits
    if json:
        print_json({"ratio": ratio, **{name: asdict(played) for name, played in series.items()}})
    else:
        _show(series, ratio)
    if any(played.lost for played in series.values()):
        note("error: episodes were lost")
        raise typer.Exit(FAILED)


def _series(
    suite: Path, device: str, count: int
) -> tuple[list[EvaluationRequest], list[EvaluationRequest]]:
    """Returns honest requests, and the same list with some replaced by hostile ones."""
    from kernel_gym.executors import EvaluationRequest
    from kernel_gym.exploits.loader import load_exploits
    from kernel_gym.exploits.runner import runs_on
    from kernel_gym.tasks import load_suite

    exploits = [e for e in load_exploits(suite) if runs_on(e, device) and not e.open]
    tasks = load_suite("quickstart").tasks
    number = round(SHARE * count)
    drawn = _drawn(exploits, number)
    places = {i * count // number: exploit for i, exploit in enumerate(drawn)}
    honest, mixed = [], []
    for place in range(count):
        exploit = places.get(place)
        task = exploit.task if exploit else tasks[place % len(tasks)]
        comment = "#" if task.language == "triton" else "//"
        request = EvaluationRequest(
            task.id, f"{task.kernel_source}\n{comment} {place}\n", seed=place
        )
        honest.append(request)
        source = exploit.source if exploit else request.source
        mixed.append(
            EvaluationRequest(task.id, source, seed=count + place)
        )  # nothing is known from before
    return honest, mixed


def _drawn(exploits: list[Exploit], number: int) -> list[Exploit]:
    """Returns a sample of the exploits; every third one waits for a time limit."""
    from kernel_gym.records import Outcome

    hanging = [e for e in exploits if Outcome.TIMEOUT in e.expected]
    others = [e for e in exploits if e not in hanging]
    pools = (others, others, hanging)
    return [pools[i % 3][i * len(pools[i % 3]) // number] for i in range(number)]


def _play(pool: Any, requests: list[EvaluationRequest]) -> Played:
    """Plays one series with an empty cache."""
    from kernel_gym.executors import EvaluationCache
    from kernel_gym.records import Outcome

    pool.cache = EvaluationCache()
    start = time.perf_counter()
    evaluations = dict(pool.results(requests))
    seconds = time.perf_counter() - start
    limits = sum(map(_limit, evaluations.values()))
    failed = sum(evaluation.outcome is Outcome.INFRA for evaluation in evaluations.values())
    return Played(
        outcomes=dict(
            Counter(str(evaluation.outcome) for evaluation in evaluations.values()).most_common()
        ),
        lost=len(requests) - len(evaluations) + failed,
        seconds=seconds,
        limits=limits,
        without_limits=seconds - limits / pool.workers,
    )


def _limit(evaluation: Evaluation) -> float:
    """Returns the seconds of the stage that hit a time limit, or 0."""
    timed_out = str(evaluation.outcome) == "timeout"
    return evaluation.wall_seconds[evaluation.stage] if timed_out else 0.0


def _show(found: dict[str, Played], ratio: float) -> None:
    table = Table()
    for header in ("episodes", "seconds", "in time limits", "without them", "lost", "outcomes"):
        table.add_column(header, justify="left" if header in ("episodes", "outcomes") else "right")
    for name, one in found.items():
        table.add_row(
            name,
            f"{one.seconds:.1f}",
            f"{one.limits:.1f}",
            f"{one.without_limits:.1f}",
            str(one.lost),
            ", ".join(f"{count} {outcome}" for outcome, count in one.outcomes.items()),
        )
    console.print(table)
    console.print(f"hostile over honest, without time limits: {ratio:.2f}x", highlight=False)
