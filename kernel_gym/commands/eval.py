"""`kernel-gym eval`: play a policy on a suite and keep what came of it."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    PolicyOption,
    RewardOption,
    SecretOption,
    SeedOption,
    SuiteOption,
    console,
    executor_arguments,
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
    Temperature,
    TopP,
    policy_options,
)

if TYPE_CHECKING:
    from rich.progress import Task as Bar

    from kernel_gym.policies import Options, Policy
    from kernel_gym.storage.run_records import RunConfig
    from kernel_gym.storage.run_store import RunStore
    from kernel_gym.tasks import Task


def evaluate(
    policy: PolicyOption,
    out: Annotated[Path, typer.Option(help="The run folder.", file_okay=False)],
    suite: SuiteOption = "quickstart",
    device: DeviceOption = "auto",
    reward: RewardOption = "kernel-opt",
    turns: Annotated[int, typer.Option(min=1, help="Submissions a task, at most.")] = 3,
    samples: Annotated[int, typer.Option(min=1, help="Episodes a task, for pass@k.")] = 1,
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
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Throw away the run in --out.")
    ] = False,
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
        _known_executor(executor)
        replies = policy_options(
            max_tokens, temperature, top_p, extra_body, parallel, rate, price_in, price_out
        )
        device, tasks = _tasks(suite, device)
        player = _player(policy, replies)
        config = _config(policy, suite, tasks, device, reward, turns, samples, seed, player)
        store = _store(out, config, resume, overwrite, secret)
    _play_to_the_end(player, tasks, store, executor, workers)
    with one_line_errors():
        _show(store, json)


def _tasks(suite: str, device: str) -> tuple[str, list[Task]]:
    """The device's full name, and the tasks of the suite that it can build and run."""
    from kernel_gym.devices import resolve
    from kernel_gym.tasks import load_suite

    device = resolve(device)
    return device, _runnable(load_suite(suite).tasks, device)


def _player(policy: str, replies: Options) -> Policy:
    from kernel_gym.policies import make_policy

    return make_policy(policy, replies)


def _config(
    policy: str,
    suite: str,
    tasks: list[Task],
    device: str,
    reward: str,
    turns: int,
    samples: int,
    seed: int | None,
    player: Policy,
) -> RunConfig:
    """What is run, as it is recorded."""
    from kernel_gym.storage.run_records import RunConfig

    return RunConfig(
        policy=policy,
        suite=suite,
        tasks=tuple(task.id for task in tasks),
        device=device,
        reward=reward,
        turns=turns,
        samples=samples,
        seed=seed,
        sampling=getattr(player, "sampling", None),
    )


def _store(
    out: Path, config: RunConfig, resume: bool, overwrite: bool, secret: Path | None
) -> RunStore:
    from kernel_gym.storage.run_store import RunStore
    from kernel_gym.storage.secret import read_secret

    given = read_secret(secret) if secret else None
    return RunStore.start(out, config, resume=resume, overwrite=overwrite, secret=given)


def _play_to_the_end(
    player: Policy, tasks: list[Task], store: RunStore, executor: str, workers: int | None
) -> None:
    """Plays; when something ends the run before, says in one line how to go on."""
    from kernel_gym.policies import PolicyError

    go_on = "; to continue, give the same command with --resume"
    try:
        with one_line_errors(go_on):
            try:
                with store.session(shlex.join(["kernel-gym", *sys.argv[1:]])):
                    _play(player, tasks, store, executor, workers)
            except PolicyError as error:
                note(f"error: {error}{go_on}")
                raise typer.Exit(FAILED) from None
    except KeyboardInterrupt:
        note(f"stopped{go_on} ({store.folder})")
        raise typer.Exit(INTERRUPTED) from None


def _runnable(tasks: tuple[Task, ...], device: str) -> list[Task]:
    """The tasks that the device can build and run; says what was left out and how to fix it."""
    from kernel_gym.devices import device_status
    from kernel_gym.tasks.small_floats import runs_on

    status = device_status(device)
    left_out = [task for task in tasks if task.language not in status.languages]
    if left_out:
        note(f"skipped, {device} cannot build them here: {', '.join(t.id for t in left_out)}")
        for fix in status.fixes:
            note(f"  to fix it: {fix}")
    built = [task for task in tasks if task.language in status.languages]
    foreign = [task.id for task in built if not runs_on(task.problem, status.arch)]
    if foreign:
        note(f"skipped, {status.arch} has other 8-bit floats: {', '.join(foreign)}")
    return [task for task in built if task.id not in foreign]


def _known_executor(name: str) -> None:
    from kernel_gym.executors import require_executor

    require_executor(name)


def _play(
    policy: Policy, tasks: list[Task], store: RunStore, executor: str, workers: int | None
) -> None:
    """Plays the tasks through an executor under a progress bar."""
    from kernel_gym.devices import describe
    from kernel_gym.episodes.conversation import PROMPTS
    from kernel_gym.executors import make_executor
    from kernel_gym.policies.reflective import Reflective
    from kernel_gym.policies.rollout import Rollout
    from kernel_gym.rewards import get_reward

    config = store.config
    if isinstance(policy, Reflective):
        policy.remember(store.folder)
        policy.arch = describe(config.device).spec.arch
    arguments = executor_arguments(executor, config.device, config.seed, workers)
    arguments["secret"] = store.secret
    total = len(tasks) * config.samples * config.turns
    with (
        _progress() as progress,
        make_executor(executor, **arguments) as pool,
    ):
        bar = progress.add_task("evaluating", total=total, completed=len(store.records()))

        def on_end(task: Task, turns: int) -> None:
            """Takes the turns that an episode did not use off the bar."""
            nonlocal total
            total -= config.turns - turns
            progress.update(bar, total=total)

        rollout = Rollout(
            policy,
            pool,
            get_reward(config.reward),
            store,
            prompt=PROMPTS[getattr(policy, "prompt", "full")](config.device),
            on_turn=lambda record: progress.advance(bar),
            on_end=on_end,
        )
        rollout.play(tasks)


class _Rate(ProgressColumn):
    """Evaluations a second."""

    def render(self, task: Bar) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:.2f}/s", style="progress.data.speed")


def _progress() -> Progress:
    columns: list[Any] = [
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeRemainingColumn(),
    ]
    return Progress(*columns, console=messages)


def _show(store: RunStore, json: bool) -> None:
    from kernel_gym.analysis.breakdown import run_metrics, write_metrics
    from kernel_gym.analysis.summary import summarise

    summary, metrics = summarise(store), run_metrics(store)
    write_metrics(store, metrics)
    masked = [record for record in store.records() if record.reward is None]
    if masked:
        note(f"{len(masked)} masked, the machine failed: {masked[0].evaluation.message}")
    _note_ends(store)
    if json:
        print_json({"folder": str(store.folder), **summary.as_dict(), "metrics": metrics})
        return
    console.print(summary_table(summary))
    console.print(metrics_table(metrics))
    console.print(f"run folder: {store.folder}", highlight=False, soft_wrap=True)


def _note_ends(store: RunStore) -> None:
    """Says why episodes ended before their last turn, the most frequent reason first."""
    reasons = Counter(end.reason for end in store.ends() if end.reason)
    for reason, count in reasons.most_common(5):
        note(f"{count} episode{'s' if count > 1 else ''} ended early: {reason}")
