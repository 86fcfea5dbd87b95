"""Evaluates a policy on a suite: what `kernel-gym eval` does, as a function."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from kernel_gym.analysis.breakdown import RunMetrics
from kernel_gym.devices import describe, device_status, resolve
from kernel_gym.devices.languages import lacking
from kernel_gym.episodes.conversation import PROMPTS
from kernel_gym.executors import (
    Executor,
    default_workers,
    is_service,
    make_executor,
    require_executor,
)
from kernel_gym.policies.base import Policy
from kernel_gym.policies.options import Options
from kernel_gym.policies.registry import make_policy
from kernel_gym.policies.rollout import Rollout
from kernel_gym.rewards import Reward, get_reward
from kernel_gym.storage.run_records import RunConfig, TurnRecord
from kernel_gym.storage.run_store import RunStore
from kernel_gym.storage.secret import RunSecret
from kernel_gym.tasks import Task, load_suite
from kernel_gym.tasks.small_floats import runs_on
from kernel_gym.tasks.verdicts import HEAD_ROOM, head_room_on

log = logging.getLogger(__name__)
FEW = 3
"""Tasks that a message names."""


@dataclass(frozen=True)
class Listener:
    """Follows the progress of a run.

    Attributes:
        on_turn: Called with each new turn.
        on_end: Called at the end of each episode with its task and its number of turns.
    """

    on_turn: Callable[[TurnRecord], None] = lambda record: None
    on_end: Callable[[Task, int], None] = lambda task, turns: None


@contextmanager
def no_monitor(store: RunStore) -> Iterator[Listener]:
    """A monitor that does nothing."""
    yield Listener()


def evaluate_policy(
    policy: str | Policy,
    suite: str = "quickstart",
    *,
    device: str = "auto",
    samples: int = 1,
    turns: int = 3,
    seed: int | None = None,
    reward: str = "kernel-opt",
    executor: str | Executor = "local",
    workers: int | None = None,
    out: Path | str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    secret: RunSecret | None = None,
    options: Options | None = None,
    monitor: Callable[[RunStore], AbstractContextManager[Listener]] = no_monitor,
    note: Callable[[str], object] = log.warning,
    command: str = "kernel_gym.evaluate_policy",
) -> RunMetrics:
    """Plays a policy on every task of a suite and computes the metrics of the run.

    Args:
        policy: A policy, or the name of one.
        suite: The name of a suite, the path of its `.toml` file, or a task id.
        device: A device name; `auto` takes a GPU if there is one.
        samples: Episodes per task.
        turns: Most submissions per episode.
        seed: Seed of unseen workloads and data; by default each submission draws its own.
        reward: A reward, as for :func:`kernel_gym.rewards.get_reward`.
        executor: The name of an executor, the address of a service, or an open executor, which
            stays open. An open one has its own device, seed and secret, and a service its own
            device, workers and secret: these arguments are ignored.
        workers: Evaluations at the same time; by default as many as the device takes.
        out: The run folder; without one nothing is kept.
        resume: Continue the run in the folder, if there is one.
        overwrite: Delete the run in the folder, if there is one.
        secret: The secret of another run, to draw the same workloads; by default it is new.
        options: How replies are drawn, if `policy` is a name.
        monitor: Opened around the play with the store of the run; gives what follows its progress.
        note: Called with each message about tasks that the device cannot run.
        command: Recorded as the origin of the run.

    Returns:
        The metrics of the run.

    Raises:
        PolicyError: The policy cannot be made or cannot continue.
        StoreError: The folder has another run.
        ValueError: A name is unknown.

    Example:
        >>> results = evaluate_policy(
        ...     "baseline", "triton2triton/softmax", device="sim:gfx942", executor="inline"
        ... )
        >>> results.summary.solved, results.sections["headline"]["execution_accuracy"]["value"]
        (1, 1.0)
    """
    with _connected(executor, seed) as place:
        if isinstance(place, Executor):
            device, seed, secret = place.device, place.seed, place.secret
        else:
            require_executor(place)
            device = resolve(device)
        scores = get_reward(reward)
        tasks = runnable(load_suite(suite).tasks, device, note)
        player = make_policy(policy, options) if isinstance(policy, str) else policy
        config = RunConfig(
            policy=policy if isinstance(policy, str) else type(policy).__name__,
            suite=suite,
            tasks=tuple(task.id for task in tasks),
            device=device,
            reward=reward,
            turns=turns,
            samples=samples,
            seed=seed,
            sampling=player.sampling,
        )
        with _folder(out) as folder:
            store = RunStore.start(
                folder, config, resume=resume, overwrite=overwrite, secret=secret
            )
            with (
                monitor(store) as listener,
                store.session(command),
                _opened(place, store, workers) as pool,
            ):
                _rollout(player, pool, scores, store, listener).play(tasks)
            return RunMetrics.of(store, keep=out is not None)


def runnable(
    tasks: Sequence[Task], device: str, note: Callable[[str], object] = log.warning
) -> list[Task]:
    """The tasks that a device can build and run.

    Args:
        tasks: Tasks to choose from.
        device: The full name of a device.
        note: Called with each message on what is left out, and how to fix it.
    """
    status = device_status(device)
    skipped = [task.id for task in tasks if task.language not in status.languages]
    if skipped:
        note(f"skipped, {device} cannot build them here: {', '.join(skipped)}")
        for fix in status.fixes:
            note(f"  to fix it: {fix}")
    built = [task for task in tasks if task.language in status.languages]
    described = describe(device)
    lacks = {task.id: lacking(task.extra, described) for task in built}
    for reason in filter(None, dict.fromkeys(lacks.values())):
        few = ", ".join(name for name, why in lacks.items() if why == reason)
        note(f"skipped, {reason}: {few}")
    built = [task for task in built if not lacks[task.id]]
    foreign = [task.id for task in built if not runs_on(task.problem, status.arch)]
    if foreign:
        note(f"skipped, {status.arch} has other 8-bit floats: {', '.join(foreign)}")
    chosen = [task for task in built if task.id not in foreign]
    closed = [task.id for task in chosen if not _has_head_room(task, device)]
    if closed:
        few = f"{', '.join(closed[:FEW])}{', ...' if len(closed) > FEW else ''}"
        note(
            f"{len(closed)} of {len(chosen)} tasks have a head-room of {HEAD_ROOM} or less on "
            f"{device}, so that hardly a kernel can win them: {few}"
        )
    return chosen


def _has_head_room(task: Task, device: str) -> bool:
    room = head_room_on(task, device)
    return room is None or room > HEAD_ROOM


@contextmanager
def _connected(executor: str | Executor, seed: int | None) -> Iterator[str | Executor]:
    """An open executor instead of the address of a service; anything else as it is."""
    if isinstance(executor, str) and is_service(executor):
        with make_executor(executor, seed=seed) as service:
            yield service
    else:
        yield executor


def _rollout(
    player: Policy, pool: Executor, reward: Reward, store: RunStore, listener: Listener
) -> Rollout:
    return Rollout(
        player,
        pool,
        reward,
        store,
        prompt=PROMPTS[player.prompt](store.config.device),
        on_turn=listener.on_turn,
        on_end=listener.on_end,
    )


@contextmanager
def _folder(out: Path | str | None) -> Iterator[Path]:
    """The run folder; without one, a temporary folder."""
    if out is not None:
        yield Path(out)
        return
    with TemporaryDirectory(prefix="kernel-gym-") as folder:
        yield Path(folder)


@contextmanager
def _opened(executor: str | Executor, store: RunStore, workers: int | None) -> Iterator[Executor]:
    """The executor of a run; closes it if it is made here."""
    if isinstance(executor, Executor):
        yield executor
        return
    config = store.config
    more: dict[str, object] = {}
    if executor != "inline":
        more["workers"] = workers or default_workers(config.device)
    if executor in ("inline", "local"):
        more["plans"] = store.plans
    with make_executor(
        executor, device=config.device, seed=config.seed, secret=store.secret, **more
    ) as opened:
        yield opened
