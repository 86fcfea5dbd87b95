"""`kernel-gym agent`: play a command-line agent on a suite."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernel_gym.commands.common import (
    BAD_INPUT,
    INTERRUPTED,
    DeviceOption,
    ExecutorOption,
    JsonOption,
    OverwriteOption,
    ResumeOption,
    RewardOption,
    RunFolderOption,
    SamplesOption,
    SecretOption,
    SeedOption,
    SuiteOption,
    note,
    one_line_errors,
)
from kernel_gym.commands.eval import show_results

if TYPE_CHECKING:
    from kernel_gym.agents.play import Manner
    from kernel_gym.storage.run_records import RunConfig

TokensOption = Annotated[
    int | None, typer.Option(min=1, help="Most tokens that its output may report.")
]


def agent(
    out: RunFolderOption,
    command: Annotated[
        str, typer.Option(help="The agent: a command for /bin/sh in the workspace.")
    ] = "",
    preset: Annotated[str, typer.Option(help="An agent by name, such as claude-code.")] = "",
    suite: SuiteOption = "quickstart",
    device: DeviceOption = "auto",
    reward: RewardOption = "kernel-opt",
    submissions: Annotated[int, typer.Option(min=1, max=63, help="Submissions a task.")] = 10,
    samples: SamplesOption = 1,
    seconds: Annotated[float, typer.Option(min=1, help="Most seconds of an episode.")] = 1800,
    tokens: TokensOption = None,
    parallel: Annotated[int, typer.Option(min=1, help="Episodes at the same time.")] = 1,
    network: Annotated[bool, typer.Option("--network", help="It reaches the network.")] = False,
    variable: Annotated[
        list[str] | None, typer.Option(help="It gets this variable; may be repeated.")
    ] = None,
    read: Annotated[
        list[Path] | None, typer.Option(help="It may read this folder; may be repeated.")
    ] = None,
    confine: Annotated[bool, typer.Option(help="Confine it to its workspace.")] = True,
    seed: SeedOption = None,
    secret: SecretOption = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Evaluations at a time.")] = None,
    executor: ExecutorOption = "local",
    resume: ResumeOption = False,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Play a command-line agent on a suite: a workspace an episode, the judge outside of it.

    The agent reads what to do in $KERNEL_GYM_PROMPT. Its verdict is a fresh evaluation of the
    kernel file that it leaves.

    Example: kernel-gym agent --preset claude-code --suite quickstart --out runs/claude
    """
    if bool(command) == bool(preset) or (resume and overwrite):
        note("error: give either --command or --preset, and not both --resume and --overwrite")
        raise typer.Exit(BAD_INPUT)
    with one_line_errors():
        from kernel_gym.agents.play import Manner
        from kernel_gym.agents.presets import Preset, get_preset
        from kernel_gym.agents.process import Limits
        from kernel_gym.storage.secret import read_secret

        chosen = get_preset(preset) if preset else Preset(command=command)
        folders = [str(folder) for folder in read or ()]
        more = {
            "network": chosen.network or network,
            "variables": (*chosen.variables, *(variable or ())),
            "read": (*chosen.read, *folders),
        }
        manner = Manner(chosen.model_copy(update=more), Limits(seconds, tokens), confine, parallel)
        name = f"agent:{preset or command}"
        draws = read_secret(secret) if secret else None
        start = {"resume": resume, "overwrite": overwrite, "secret": draws}
        config = _config(name, suite, device, executor, reward, submissions, samples, seed)
        _play(out, config, manner, start, executor, workers, json)


def _config(
    name: str, suite: str, device: str, executor: str, reward: str, submissions: int,
    samples: int, seed: int | None,
) -> RunConfig:  # fmt: skip
    """The configuration of the run; a service chooses its device."""
    from kernel_gym.devices import resolve
    from kernel_gym.executors import is_service, make_executor, require_executor
    from kernel_gym.policies.evaluate import runnable
    from kernel_gym.storage.run_records import RunConfig
    from kernel_gym.tasks import load_suite

    require_executor(executor)
    if is_service(executor):
        with make_executor(executor) as service:
            device = service.device
    device = resolve(device)
    tasks = runnable(load_suite(suite).tasks, device, note)
    return RunConfig(
        policy=name,
        suite=suite,
        tasks=tuple(task.id for task in tasks),
        device=device,
        reward=reward,
        turns=submissions + 1,
        samples=samples,
        seed=seed,
    )


def _play(
    out: Path, config: RunConfig, manner: Manner, start: dict[str, Any], executor: str,
    workers: int | None, json: bool,
) -> None:  # fmt: skip
    from kernel_gym.agents.desk import Recorder
    from kernel_gym.agents.play import AgentPlay
    from kernel_gym.analysis.breakdown import RunMetrics
    from kernel_gym.commands.common import executor_arguments
    from kernel_gym.executors import make_executor
    from kernel_gym.rewards import get_reward
    from kernel_gym.storage.run_store import RunStore
    from kernel_gym.tasks import get_task

    store = RunStore.start(out, config, **start)
    arguments = executor_arguments(executor, config.device, config.seed, workers)
    recorder = Recorder(
        store,
        get_reward(config.reward),
        lambda record: note(f"{record.task} {record.turn}: {record.evaluation.outcome}"),
    )
    try:
        with (
            store.session(shlex.join(["kernel-gym", *sys.argv[1:]])),
            make_executor(executor, **arguments, secret=store.secret) as pool,
        ):
            AgentPlay(recorder, pool, manner).play([get_task(name) for name in config.tasks])
    except KeyboardInterrupt:
        note(f"stopped; to continue, give the same command with --resume ({out})")
        raise typer.Exit(INTERRUPTED) from None
    show_results(out, RunMetrics.of(store), json)
