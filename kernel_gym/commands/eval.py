"""`kernel-gym eval`: play a policy on a suite and keep what came of it."""

from __future__ import annotations

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
    FAILED,
    INTERRUPTED,
    DeviceOption,
    ExecutorOption,
    JsonOption,
    RewardOption,
    SecretOption,
    SeedOption,
    console,
    executor_arguments,
    messages,
    note,
    one_line_errors,
    print_json,
    summary_table,
)
from kernel_gym.commands.metrics_table import metrics_table

if TYPE_CHECKING:
    from rich.progress import Task as Bar

    from kernel_gym.store import RunStore
    from kernel_gym.tasks import Task
    from kernel_gym.training.policies import Policy


def evaluate(
    policy: Annotated[str, typer.Option(help="baseline, examples, folder:PATH, hf:PATH ...")],
    out: Annotated[Path, typer.Option(help="The run folder.", file_okay=False)],
    suite: Annotated[str, typer.Option(help="A suite's name, or a TOML file.")] = "quickstart",
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
    from kernel_gym.devices import resolve
    from kernel_gym.secret import read_secret
    from kernel_gym.store import RunConfig, RunStore
    from kernel_gym.tasks import load_suite
    from kernel_gym.training.policies import PolicyError, make_policy

    if resume and overwrite:
        note("error: give --resume or --overwrite, not both")
        raise typer.Exit(2)
    with one_line_errors():
        device = resolve(device)
        tasks = _runnable(load_suite(suite).tasks, device)
        config = RunConfig(
            policy=policy,
            suite=suite,
            tasks=tuple(task.id for task in tasks),
            device=device,
            reward=reward,
            turns=turns,
            samples=samples,
            seed=seed,
        )
        player = make_policy(policy)
        _known(reward, executor)
        given = read_secret(secret) if secret else None
        store = RunStore.start(out, config, resume=resume, overwrite=overwrite, secret=given)
    try:
        _play(player, tasks, store, executor, workers)
    except (PolicyError, KeyboardInterrupt) as error:
        broken = isinstance(error, PolicyError)
        said = f"error: {error}" if broken else "stopped"
        note(f"{said}; to continue, give the same command with --resume ({out})")
        raise typer.Exit(FAILED if broken else INTERRUPTED) from None
    _show(store, json)


def _runnable(tasks: tuple[Task, ...], device: str) -> list[Task]:
    """The tasks that the device can build and run; says what was left out and how to mend it."""
    from kernel_gym.devices import describe_devices
    from kernel_gym.tasks.small_floats import runs_on

    status = next(status for status in describe_devices() if status.name == device)
    left_out = [task for task in tasks if task.language not in status.languages]
    if left_out:
        note(f"skipped, {device} cannot build them here: {', '.join(t.id for t in left_out)}")
        for mend in status.mends:
            note(f"  to mend it: {mend}")
    built = [task for task in tasks if task.language in status.languages]
    foreign = [task.id for task in built if not runs_on(task.problem, status.arch)]
    if foreign:
        note(f"skipped, {status.arch} has other 8-bit floats: {', '.join(foreign)}")
    return [task for task in built if task.id not in foreign]


def _known(reward: str, executor: str) -> None:
    from kernel_gym.executors import require_executor
    from kernel_gym.rewards import get_reward

    get_reward(reward)
    require_executor(executor)


def _play(
    policy: Policy, tasks: list[Task], store: RunStore, executor: str, workers: int | None
) -> None:
    """Plays the tasks through an executor under a progress bar."""
    from kernel_gym.envs.shared import shared_executor
    from kernel_gym.executors import make_executor
    from kernel_gym.rewards import get_reward
    from kernel_gym.training.conversation import PROMPTS
    from kernel_gym.training.policies.reflective import Reflective
    from kernel_gym.training.rollout import Rollout

    config = store.config
    if isinstance(policy, Reflective):
        policy.remember(store.folder)
        policy.arch = shared_executor(config.device).evaluator.device.spec.arch
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
    from kernel_gym.summary import summarise
    from kernel_gym.training.breakdown import run_metrics, write_metrics

    summary, metrics = summarise(store), run_metrics(store)
    write_metrics(store, metrics)
    masked = [record for record in store.records() if record.reward is None]
    if masked:
        note(f"{len(masked)} masked, the machine failed: {masked[0].evaluation.message}")
    if json:
        print_json({"folder": str(store.folder), **summary.as_dict(), "metrics": metrics})
        return
    console.print(summary_table(summary))
    console.print(metrics_table(metrics))
    console.print(f"run folder: {store.folder}", highlight=False, soft_wrap=True)
