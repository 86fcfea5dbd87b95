"""`kernel-gym train`: train a policy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernel_gym.commands.common import (
    INTERRUPTED,
    console,
    executor_arguments,
    note,
    one_line_errors,
)

if TYPE_CHECKING:
    from kernel_gym.executors import Executor
    from kernel_gym.training.config import TrainConfig


def train(
    config: Annotated[Path, typer.Argument(help="A TOML file; docs/training.md explains it.")],
    out: Annotated[Path | None, typer.Option(help="The run folder, instead of its own.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="The seed, instead of its own.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run.")] = False,
) -> None:
    """Train a policy: warm start on a corpus of kernels, then GRPO on the gym's rewards.

    For example:

    kernel-gym train kernel_gym/training/configs/tiny_cpu.toml

    kernel-gym train kernel_gym/training/configs/tiny_cpu.toml --out runs/mine --seed 1 --resume
    """
    from dataclasses import replace

    from kernel_gym.devices import resolve
    from kernel_gym.executors import is_service, make_executor, require_executor
    from kernel_gym.rewards import get_reward
    from kernel_gym.tasks import get_task
    from kernel_gym.training.config import read_config
    from kernel_gym.training.train import secret_of

    with one_line_errors():
        asked = read_config(config)
        asked = replace(asked, out=str(out or asked.out), seed=asked.seed if seed is None else seed)
        _installed(vllm=asked.grpo.vllm != "off")
        gym = asked.gym
        for task in (*asked.tasks.train, *asked.tasks.held_out):
            get_task(task)
        get_reward(gym.reward)
        require_executor(gym.executor)
        arguments = executor_arguments(
            gym.executor, resolve(gym.device), gym.seed, gym.workers or None
        )
        if not is_service(gym.executor):
            arguments["secret"] = secret_of(Path(asked.out))
    try:
        with make_executor(gym.executor, **arguments) as executor:
            _run(asked, executor, resume)
    except KeyboardInterrupt:
        note(f"stopped; to continue, give the same command with --resume ({asked.out})")
        raise typer.Exit(INTERRUPTED) from None


def _run(config: TrainConfig, executor: Executor, resume: bool) -> None:
    from kernel_gym.training.assess import rise
    from kernel_gym.training.train import Training

    with one_line_errors():
        start, final = Training(config, executor, resume, note).run()
    for name, tasks in (("trained on", config.tasks.train), ("held out", config.tasks.held_out)):
        if tasks:
            change = rise(start, final, tasks)
            span = "no interval, "
            if change.low is not None:
                span = f"95 % interval {change.low:+.3f} to {change.high:+.3f}, paired over "
            console.print(
                f"mean reward over tasks {name} rose by {change.value:+.3f} ({span}{len(tasks)} "
                f"tasks, {config.assess.samples} replies each)",
                highlight=False,
                soft_wrap=True,
            )
    console.print(f"run folder: {config.out}", highlight=False, soft_wrap=True)


def _installed(vllm: bool) -> None:
    """Stops with one line when something that the run needs is missing."""
    from importlib.util import find_spec

    missing = [name for name in ("trl", "transformers", "datasets") if find_spec(name) is None]
    if missing:
        note(f"error: {', '.join(missing)} is missing; pip install 'kernel-gym[train]'")
        raise typer.Exit(2)
    if vllm and find_spec("vllm") is None:
        note("error: key 'grpo.vllm': vllm is not installed; pip install vllm, or set it to 'off'")
        raise typer.Exit(2)
