"""`python -m benchmarks scale`: how many devices one driver keeps busy."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import track

from kernel_gym.commands.common import (
    JsonOption,
    console,
    messages,
    note,
    one_line_errors,
    print_json,
)
from kernel_gym.commands.tables import folding_table

if TYPE_CHECKING:
    from benchmarks.sleeping import Load
    from kernel_gym.episodes.episode import Episode
    from kernel_gym.storage.run_records import TurnRecord

TASK = "triton2triton/softmax"
SECONDS = (0.22, 0.36, 0.61, 0.82, 1.14, 1.45, 1.66, 2.29, 2.57, 3.41, 5.04)
"""Deciles of the sum of `wall_seconds` over the 36 submissions of the quickstart examples on
sim:gfx942, two at a time on two cores."""
BUSY, SATURATED = 0.95, 0.85


@dataclass(frozen=True)
class ScalePoint:
    """The result for one number of devices.

    Attributes:
        devices: How many.
        rate: Evaluations a second.
        busy: Share of the time that the devices slept, as if they worked.
        gap: Seconds that a device waits between two evaluations.
        driver: CPU seconds of the driver's process a second, all its threads.
        each: CPU seconds of the driver an evaluation.
        machine: Share of all cores in use, Ray and the actors included.
        limit: What keeps the rate from being higher.
    """

    devices: int
    rate: float
    busy: float
    gap: float
    driver: float
    each: float
    machine: float
    limit: str


def scale(
    devices: Annotated[
        list[int] | None, typer.Option("--devices", "-n", min=1, help="1, 8, 64 and 512.")
    ] = None,
    run: Annotated[
        Path | None, typer.Option(help="A run folder whose stage times and records are used.")
    ] = None,
    executor: Annotated[str, typer.Option(help="What places them: ray or local.")] = "ray",
    seconds: Annotated[float, typer.Option(min=1, help="To measure each number for.")] = 15,
    json: JsonOption = False,
) -> None:
    """Devices that sleep as long as evaluations take, under a real rollout and executor.

    The policy, the rollout, the executor, Ray, the records and the run folder are real; a device
    sleeps instead of evaluating, so that hundreds fit on this machine. On Ray one actor stands for
    up to 128 of them, so the work of a cluster's nodes is not measured.

    Example: python -m benchmarks scale --executor local --devices 8 --seconds 5
    """
    from benchmarks.sleeping import SLEEPING

    with one_line_errors():
        if executor not in SLEEPING:
            raise typer.BadParameter(f"unknown executor {executor!r}; known: {', '.join(SLEEPING)}")
        load = _load(run)
    points = []
    numbers = devices or (1, 8, 64, 512)
    for number in track(numbers, "measuring", console=messages, transient=True):
        points.append(_measure(SLEEPING[executor](load, number), load, number, seconds))
        note(f"{number} devices: {points[-1].rate:.3g} evaluations a second")
    if json:
        rows = [asdict(point) for point in points]
        print_json({"executor": executor, "mean_seconds": load.mean, "points": rows})
    else:
        _show(executor, load, points)


def _load(run: Path | None) -> Load:
    """Returns the times and records of a run, or the default times with one new evaluation."""
    from benchmarks.sleeping import Load
    from kernel_gym.executors import make_executor
    from kernel_gym.storage.json_lines import StoreError
    from kernel_gym.storage.run_store import RunStore
    from kernel_gym.tasks import get_task

    if run is None:
        with make_executor("inline", device="sim:gfx942", seed=0) as executor:
            return Load(SECONDS, [executor.evaluate(TASK, get_task(TASK).kernel_source)])
    store = RunStore(run)
    records = [record.evaluation for record in store.records()]
    if not records:
        raise StoreError(f"{run} holds no submission to take times from")
    seconds = [sum(found.wall_seconds.values()) for found in records]
    return Load(seconds, [r.model_copy(update={"task": TASK}) for r in records])


class _Window:
    """Counts results in a window that starts when each device has given two on average."""

    def __init__(self, devices: int, seconds: float) -> None:
        self._warm, self._length = 2 * devices, seconds
        self.results, self.over = 0, False
        self.start: tuple[float, float, float, float] | None = None
        self.end: tuple[float, float, float, float] | None = None

    def note(self, record: TurnRecord) -> None:
        """Counts a result."""
        if self._warm > 0:
            self._warm -= 1
            if self._warm == 0:
                self.start = _clocks()
        elif self.start and not self.over:
            self.results += 1
            self.end = _clocks()
            self.over = self.end[0] - self.start[0] >= self._length


def _measure(executor: Any, load: Load, devices: int, seconds: float) -> ScalePoint:
    """Plays episodes until the window ends."""
    from kernel_gym.policies import Scripted
    from kernel_gym.policies.rollout import Rollout
    from kernel_gym.rewards import get_reward
    from kernel_gym.storage.run_records import RunConfig
    from kernel_gym.storage.run_store import RunStore
    from kernel_gym.tasks import get_task

    task, window, slept = get_task(TASK), _Window(devices, seconds), []
    kernel, numbers = task.kernel_source, iter(range(10**9))

    class Endless(Scripted):
        def submit(self, episode: Episode) -> str | None:
            return None if window.over else f"{kernel}\n# {next(numbers)}\n"

    def on_turn(record: TurnRecord) -> None:
        if window.start and not window.over:
            slept.append(load.draw(store.source(record))[0])
        window.note(record)

    with tempfile.TemporaryDirectory() as folder, executor:
        config = RunConfig(
            policy="endless",
            suite="scale",
            tasks=(TASK,),
            device=load.device,
            reward="kernel-opt",
            turns=10**6,
            samples=executor.room + devices,
            seed=0,
        )
        store = RunStore.start(Path(folder) / "run", config)
        Rollout(Endless(), executor, get_reward(), store, on_turn).play([task])
    return _point(devices, window, sum(slept))


def _point(devices: int, window: _Window, slept: float) -> ScalePoint:
    assert window.start
    assert window.end
    wall, driver, used, idle = (b - a for a, b in zip(window.start, window.end, strict=True))
    busy, machine = slept / (devices * wall), used / (used + idle)
    return ScalePoint(
        devices=devices,
        rate=window.results / wall,
        busy=busy,
        gap=max(devices * wall - slept, 0.0) / window.results,
        driver=driver / wall,
        each=driver / window.results,
        machine=machine,
        limit=_limit(busy, driver / wall, machine),
    )


def _limit(busy: float, driver: float, machine: float) -> str:
    if busy >= BUSY:
        return "the devices"
    if driver >= SATURATED:
        return "the driver: one Python process"
    if machine >= SATURATED:
        return "the cores here: driver, Ray and actors share them"
    return "the way from a result to the next submission"


def _clocks() -> tuple[float, float, float, float]:
    """Seconds: wall, CPU of this process, used and idle time of all cores together."""
    fields = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
    ticks = [int(field) / 100 for field in fields]
    idle = ticks[3] + ticks[4]
    return time.perf_counter(), time.process_time(), sum(ticks) - idle, idle


def _show(executor: str, load: Load, found: Sequence[ScalePoint]) -> None:
    title = f"sleeping devices, {executor} executor, {load.mean:.2f} s an evaluation"
    numbers = ("devices", "a second", "busy", "driver", "cores", "driver ms", "gap ms")
    table = folding_table(*numbers, "limit", right=numbers, title=title)
    for point in found:
        table.add_row(
            str(point.devices),
            f"{point.rate:.2f}",
            f"{point.busy:.0%}",
            f"{point.driver:.0%}",
            f"{point.machine:.0%}",
            f"{point.each * 1e3:.2f}",
            f"{point.gap * 1e3:.1f}",
            point.limit,
        )
    console.print(table)
    console.print(
        "busy: of the devices' time; driver: of one core; cores: of all here; driver ms: the "
        "driver's CPU time an evaluation; gap: from a device's result to its next submission"
    )
    most = 1 / max(found, key=lambda point: point.devices).each
    console.print(
        f"one driver's CPU is used up at {most:,.0f} evaluations a second, "
        f"{most * load.mean:,.0f} such devices"
    )
