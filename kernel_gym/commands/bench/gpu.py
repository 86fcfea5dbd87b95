"""`kernel-gym bench timing` and `throughput`: precision of timing and evaluations a minute."""

from __future__ import annotations

import contextlib
import itertools
import math
import statistics
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.progress import track

from kernel_gym.commands.common import (
    DeviceOption,
    ExecutorOption,
    JsonOption,
    SuiteOption,
    console,
    executor_arguments,
    messages,
    note,
    one_line_errors,
    print_json,
)
from kernel_gym.commands.tables import folding_table

if TYPE_CHECKING:
    from kernel_gym.commands.output import Row
    from kernel_gym.devices.base import Device, TimedSession
    from kernel_gym.executors.base import EvaluationRequest
    from kernel_gym.tasks import Task

TASK = "triton2triton/softmax"
SLOWDOWNS = (0, 10, 20, 50, 100, 150, 300)
"""Rows that the slowed kernel computes twice, of 1000. Short calls hardly feel a few of them."""
KERNEL = """
import torch
import triton
import triton.language as tl

EXTRA = {extra}


@triton.jit
def row_kernel(x, out, rows, cols, x_stride, x_column, BLOCK: tl.constexpr):
    row = tl.program_id(0) % rows
    columns = tl.arange(0, BLOCK)
    mask = columns < cols
    source = x + row.to(tl.int64) * x_stride + columns * x_column
    values = tl.load(source, mask=mask, other=-float("inf")).to(tl.float32)
    values = tl.exp(values - tl.max(values, axis=0))
    values = values / tl.sum(values, axis=0)
    tl.store(out + row.to(tl.int64) * cols + columns, values.to(out.dtype.element_ty), mask=mask)


def softmax(x):
    rows, cols = x.shape
    out = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    block = triton.next_power_of_2(cols)
    grid = (rows + rows * EXTRA // 1000,)
    row_kernel[grid](x, out, rows, cols, x.stride(0), x.stride(1), BLOCK=block)
    return out
"""
SHAPES = (
    {"rows": 131072, "cols": 1024},
    {"rows": 65536, "cols": 1024},
    {"rows": 4096, "cols": 512},
)
"""Sizes: on a fast GPU one call that is stamped alone, and replayed calls above and below 50 us."""


def timing(
    repeats: Annotated[int, typer.Option(min=5, help="Comparisons of each kind.")] = 50,
    device: DeviceOption = "auto",
    json: JsonOption = False,
) -> None:
    """A kernel against itself, and against itself with 1 to 30 % more work.

    Prints how often the interval covers the true ratio (for a slowed kernel, the pooled mean), and
    how often it shows the slow-down. Figures in brackets are for the interval that a record holds,
    which is wider by the noise floor on each side.

    Example: kernel-gym bench timing --device cuda:0
    """
    with one_line_errors():
        rows = list(_timing_rows(device, repeats))
    if json:
        print_json({"repeats": repeats, "comparisons": rows})
        return
    title = f"{repeats} comparisons of each kind on {rows[0]['device']}"
    numbers = ("more work", "us", "ratio", "half-width", "covered", "distinguished")
    table = folding_table("workload", *numbers, right=numbers, title=title)
    for row in rows:
        table.add_row(
            row["workload"] + (" (graph)" if row["graph"] else ""),
            f"{row['extra']:.1%}",
            f"{row['microseconds']:.1f}",
            f"{row['ratio']:.4f}",
            f"{row['half_width']:.2%}",
            f"{row['covered']:.0%} ({row['covered_in_record']:.0%})",
            f"{row['told_apart']:.0%} ({row['told_apart_in_record']:.0%})",
        )
    console.print(table)


def _timing_rows(name: str, repeats: int) -> Iterator[Row]:
    from kernel_gym.devices import describe, open_device
    from kernel_gym.devices.base import Exclusivity, TimingMethod
    from kernel_gym.judge.timing.comparison import compare_sessions
    from kernel_gym.judge.timing.noise_floor import noise_floor
    from kernel_gym.tasks import get_task

    described = describe(name)
    if described.timing is not TimingMethod.PAIRED:
        text = f"{described.name} has a modelled clock without noise; name a GPU"
        raise typer.BadParameter(text)
    device, task = open_device(name), get_task(TASK)
    baseline, *others = (_session(device, task, extra) for extra in (0, *SLOWDOWNS))
    steps = list(itertools.product(SHAPES, zip(SLOWDOWNS, others, strict=True)))
    for dims, (extra, other) in track(steps, "timing", console=messages, transient=True):
        with device.held(Exclusivity.ALONE):
            noise = noise_floor(device, compare_sessions)
            yield _summarise(device, task, dims, extra / 1000, noise, baseline, other, repeats)
    for session in (baseline, *others):
        session.close()
    device.close()


def _session(device: Device, task: Task, extra: int) -> TimedSession:
    session = device.open(task, trusted=True)
    failed = session.load(KERNEL.format(extra=extra))
    assert failed is None, failed
    return cast("TimedSession", session)


def _summarise(
    device: Device,
    task: Task,
    dims: dict[str, int],
    extra: float,
    noise: float,
    baseline: TimedSession,
    other: TimedSession,
    repeats: int,
) -> Row:
    from kernel_gym.judge.timing.comparison import compare_sessions
    from kernel_gym.judge.timing.deferred_checks import DeferredChecks
    from kernel_gym.judge.timing.paired import PairedResult
    from kernel_gym.tasks.workload import Kind, Split, Workload

    workload = Workload(dims, Split.TRAIN, Kind.TRAIN, distribution="normal")
    deferred = DeferredChecks()
    results = [
        compare_sessions(task, workload, baseline, other, seed, device, deferred)
        for seed in range(repeats)
    ]
    comparisons = [pairs for pairs in results if isinstance(pairs, PairedResult)]
    assert len(comparisons) == repeats, results
    assert not deferred.check()
    intervals = [pairs.interval for pairs in comparisons]
    truth = 0.0 if extra == 0 else statistics.fmean(i.mean for i in intervals)

    def covered(wider: float) -> float:
        return sum(abs(i.mean - truth) <= i.half + wider for i in intervals) / repeats

    def told_apart(wider: float) -> float:
        return sum(i.mean + i.half + wider < 0 for i in intervals) / repeats

    return {
        "device": device.description.name,
        "workload": "x".join(map(str, dims.values())),
        "extra": extra,
        "graph": comparisons[0].graph,
        "microseconds": 1e6 * statistics.median(p.candidate_seconds for p in comparisons),
        "ratio": math.exp(statistics.fmean(i.mean for i in intervals)),
        "spread": statistics.stdev(i.mean for i in intervals),
        "half_width": statistics.median(i.half for i in intervals),
        "noise_floor": noise,
        "covered": covered(0.0),
        "covered_in_record": covered(noise),
        "told_apart": told_apart(0.0),
        "told_apart_in_record": told_apart(noise),
        "pairs": statistics.fmean(len(p.effects) for p in comparisons),
    }


def throughput(
    count: Annotated[int, typer.Option(min=4, help="Evaluations that are counted.")] = 48,
    workers: Annotated[int, typer.Option(min=1, help="Evaluators side by side.")] = 6,
    language: Annotated[str, typer.Option(help="triton or hip.")] = "triton",
    broken: Annotated[
        bool, typer.Option("--broken", help="Candidates that do not compile.")
    ] = False,
    suite: SuiteOption = "quickstart",
    executor: ExecutorOption = "local",
    device: DeviceOption = "auto",
    json: JsonOption = False,
) -> None:
    """Full evaluations a minute, all candidates different, and where the time goes.

    The first evaluation of each evaluator warms it up and is not counted, and as many come after
    the last that is, so that all are busy until then.

    Example: kernel-gym bench throughput --device cuda:0 --executor ray --workers 12
    """
    from kernel_gym.executors import make_executor

    with one_line_errors():
        requests = list(itertools.islice(_requests(suite, language, broken), count + 2 * workers))
        pool = make_executor(executor, **executor_arguments(executor, device, None, workers))
    outcomes: Counter[str] = Counter()
    labels: Counter[str] = Counter()
    stages: defaultdict[str, float] = defaultdict(float)
    with pool, _Busy(pool.device) as busy:
        results = itertools.islice(pool.results(iter(requests)), workers + count)
        steps = track(results, "evaluating", workers + count, console=messages, transient=True)
        for number, (_, evaluation) in enumerate(steps):
            if number < workers:
                start = time.perf_counter()
                busy.forget()
                continue
            outcomes[str(evaluation.outcome)] += 1
            labels.update(evaluation.labels)
            if evaluation.message and not broken:
                note(f"{evaluation.task}: {evaluation.outcome}: {evaluation.message}")
                for workload in (w for w in evaluation.workloads if not w.passed):
                    note(f"  {dict(workload.dims)}, {workload.distribution}: {workload.message}")
            for stage, seconds in evaluation.wall_seconds.items():
                stages[str(stage)] += seconds / count
        spent = time.perf_counter() - start
    _show_throughput(60 * count / spent, outcomes, labels, dict(stages), busy.share, json)


def _requests(suite: str, language: str, broken: bool) -> Iterator[EvaluationRequest]:
    """Yields baselines of a suite in turn, each with a new comment, so that no cache has it."""
    from kernel_gym.executors import EvaluationRequest
    from kernel_gym.tasks import load_suite
    from kernel_gym.tasks.task import kernel_path

    tasks = [task for task in load_suite(suite).tasks if task.language == language]
    if not tasks:
        raise typer.BadParameter(f"the suite {suite} has no tasks in {language!r}")
    comment = "#" if language == "triton" else "//"
    for number, task in enumerate(itertools.cycle(tasks)):
        source = kernel_path(task.problem, language).read_text(encoding="utf-8")
        if broken:
            source = source.replace("tl.store(", "tl.no_such_function(")
            comment = "#" if language == "triton" else "no code"
        yield EvaluationRequest(task.id, f"{source}\n{comment} {number}\n")


class _Busy:
    """Samples the share of time in which kernels run on a GPU, as its driver reports it."""

    def __init__(self, device: str) -> None:
        from kernel_gym.devices import describe

        self._index = describe(device).torch_device.index
        self._samples: list[float] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    @property
    def share(self) -> float | None:
        """Returns the mean of the samples; None if the driver reports none."""
        return statistics.fmean(self._samples) / 100 if self._samples else None

    def forget(self) -> None:
        """Deletes the samples."""
        self._samples.clear()

    def __enter__(self) -> _Busy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _sample(self) -> None:
        import torch

        with contextlib.suppress(Exception):  # no library that asks the driver, or no GPU
            while self._index is not None and not self._over.wait(0.1):
                self._samples.append(torch.cuda.utilization(self._index))


def _show_throughput(
    rate: float,
    outcomes: Counter[str],
    labels: Counter[str],
    means: dict[str, float],
    busy: float | None,
    json: bool,
) -> None:
    """Prints evaluations per minute, and the mean seconds in each stage."""
    if json:
        counts = {"outcomes": dict(outcomes), "labels": dict(labels)}
        print_json({"per_minute": rate, **counts, "stage_seconds": means, "gpu_busy": busy})
        return
    title, seconds_column = f"{rate:.0f} evaluations a minute", "mean seconds"
    table = folding_table("stage", seconds_column, right=(seconds_column,), title=title)
    for stage, seconds in means.items():
        table.add_row(stage, f"{seconds:.2f}")
    console.print(table)
    if busy is not None:
        console.print(f"kernels run on the GPU {busy:.0%} of the time, by its driver's account")
    for counted in (outcomes, labels):
        if counted:
            console.print(", ".join(f"{name}: {number}" for name, number in counted.items()))
