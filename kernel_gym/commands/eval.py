"""`kernel-gym eval`: play a policy on a suite and keep the results."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from kernel_gym.commands.common import (
    BAD_INPUT,
    FAILED,
    INTERRUPTED,
    DeviceOption,
    ExecutorOption,
    JsonOption,
    OverwriteOption,
    PolicyOption,
    ResumeOption,
    RewardOption,
    RunFolderOption,
    SamplesOption,
    SecretOption,
    SeedOption,
    SuiteOption,
    console,
    limits_text,
    messages,
    note,
    one_line_errors,
    print_json,
    summary_table,
)
from kernel_gym.commands.metrics_table import metrics_table
from kernel_gym.commands.sampling import (
    ExtraBody,
    MaxTokens,
    Parallel,
    PriceIn,
    PriceOut,
    Rate,
    RequestTimeout,
    Temperature,
    TopP,
    policy_options,
)

if TYPE_CHECKING:
    from rich.progress import ProgressColumn
    from rich.progress import Task as Bar

    from kernel_gym.analysis.breakdown import RunMetrics
    from kernel_gym.policies.evaluate import Listener
    from kernel_gym.storage.run_store import RunStore
    from kernel_gym.tasks import Task

_GO_ON = "; to continue, give the same command with --resume"


def evaluate(
    policy: PolicyOption,
    out: RunFolderOption,
    suite: SuiteOption = "quickstart",
    device: DeviceOption = "auto",
    reward: RewardOption = "kernel-opt",
    turns: Annotated[int, typer.Option(min=1, help="Submissions a task, at most.")] = 3,
    samples: SamplesOption = 1,
    seed: SeedOption = None,
    secret: SecretOption = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Evaluations at a time; by default as many as fit.")
    ] = None,
    executor: ExecutorOption = "local",
    max_tokens: MaxTokens = None,
    temperature: Temperature = None,
    top_p: TopP = None,
    extra_body: ExtraBody = None,
    parallel: Parallel = None,
    rate: Rate = None,
    request_timeout: RequestTimeout = None,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    resume: ResumeOption = False,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Play a policy on a suite, and keep every submission, evaluation and reward.

    Two runs draw the same when they have one seed and the second has the first's --secret.

    Example: kernel-gym eval --policy examples --suite quickstart --out runs/demo --seed 0
    """
    if resume and overwrite:
        note("error: give --resume or --overwrite, not both")
        raise typer.Exit(BAD_INPUT)
    with one_line_errors():
        from kernel_gym.executors import require_executor

        require_executor(executor)
        sampling = (max_tokens, temperature, top_p, extra_body)
        options = policy_options(*sampling, parallel, rate, request_timeout, price_in, price_out)
        from kernel_gym.policies import evaluate_policy
        from kernel_gym.storage.secret import read_secret

        metrics = evaluate_policy(
            policy,
            suite,
            device=device,
            samples=samples,
            turns=turns,
            seed=seed,
            reward=reward,
            executor=executor,
            workers=workers,
            out=out,
            resume=resume,
            overwrite=overwrite,
            secret=read_secret(secret) if secret else None,
            options=options,
            monitor=_monitor,
            note=note,
            command=shlex.join(["kernel-gym", *sys.argv[1:]]),
        )
        show_results(out, metrics, json)


@contextmanager
def _monitor(store: RunStore) -> Iterator[Listener]:
    """Shows the progress of a run; if the run stops early, says in one line how to continue."""
    from kernel_gym.policies import PolicyError

    try:
        with one_line_errors(_GO_ON):
            try:
                with _progress() as progress:
                    yield _bar(progress, store)
            except PolicyError as error:
                note(f"error: {error}{_GO_ON}")
                raise typer.Exit(FAILED) from None
    except KeyboardInterrupt:
        note(f"stopped{_GO_ON} ({store.folder})")
        raise typer.Exit(INTERRUPTED) from None


def _bar(progress: Progress, store: RunStore) -> Listener:
    """A progress bar over the turns of a run."""
    from kernel_gym.policies.evaluate import Listener

    config = store.config
    total = len(config.tasks) * config.samples * config.turns
    bar = progress.add_task("evaluating", total=total, completed=len(store.records()))

    def on_end(task: Task, turns: int) -> None:
        """Takes the turns that an episode did not use off the bar."""
        nonlocal total
        total -= config.turns - turns
        progress.update(bar, total=total)

    return Listener(on_turn=lambda record: progress.advance(bar), on_end=on_end)


class _Rate(ProgressColumn):
    """Evaluations a second."""

    def render(self, task: Bar) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:.2f}/s", style="progress.data.speed")


def _progress() -> Progress:
    columns: list[str | ProgressColumn] = [
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeRemainingColumn(),
    ]
    return Progress(*columns, console=messages)


def show_results(folder: Path, results: RunMetrics, json: bool) -> None:
    """Prints the results of a run."""
    from kernel_gym.storage.run_store import RunStore

    store, summary, metrics = RunStore(folder), results.summary, results.sections
    masked = [record for record in store.records() if record.reward is None]
    if masked:
        note(f"{len(masked)} masked, not the kernels' fault: {masked[0].evaluation.message}")
    _note_ends(store)
    suites = _suites(store)
    if json:
        written = {"folder": str(store.folder), **summary.as_dict(), "metrics": metrics}
        print_json(written | ({"suites": suites} if suites else {}))
        return
    console.print(summary_table(summary))
    if limits := limits_text(summary):
        console.print(limits, highlight=False, soft_wrap=True)
    console.print(metrics_table(metrics))
    for suite, values in suites.items():
        console.print(f"{suite}, by its own formulas: {_in_line(values)}", highlight=False)
    console.print(
        f"run folder: {store.folder}; files of TASK are in its sources/TASK/",
        highlight=False,
        soft_wrap=True,
    )


def _suites(store: RunStore) -> dict[str, dict[str, object]]:
    """Returns the metrics of imported suites by their formulas, for the tasks of a run."""
    from kernel_gym.analysis.suite_metrics import suite_metrics
    from kernel_gym.tasks import get_task
    from kernel_gym.tasks.names import is_imported

    by_suite: dict[str, dict[str, str]] = {}
    for name in filter(is_imported, store.config.tasks):
        problem = get_task(name).problem
        by_suite.setdefault(problem.suite, {})[name] = problem.category
    return {
        suite: suite_metrics(store, categories, (1, 5)) for suite, categories in by_suite.items()
    }


def _in_line(values: dict[str, object]) -> str:
    plain = {key: value for key, value in values.items() if isinstance(value, int | float)}
    return ", ".join(f"{key} {value:.3g}" for key, value in plain.items())


def _note_ends(store: RunStore) -> None:
    """Prints why episodes ended before their last turn, the most frequent reason first."""
    reasons = Counter(end.reason for end in store.ends() if end.reason)
    for reason, count in reasons.most_common(5):
        note(f"{count} episode{'s' if count > 1 else ''} ended early: {reason}")
