"""Attends one workspace: opens the judge beside it and serves its sockets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kernel_gym.agents.desk import Desk, Recorder
from kernel_gym.agents.serve import desk_server, mcp_server
from kernel_gym.agents.workspace import SETTINGS, WorkspaceError, read_settings, write_workspace
from kernel_gym.devices import resolve
from kernel_gym.executors import make_executor
from kernel_gym.rewards import get_reward
from kernel_gym.storage.run_records import RunConfig
from kernel_gym.storage.run_store import RunStore
from kernel_gym.tasks import Task

POLICY = "workspace"
"""The name of the policy in the record of a workspace that a person attends."""


@contextmanager
def attended(
    task: Task,
    folder: Path,
    run: Path,
    device: str,
    submissions: int,
    reward: str = "kernel-opt",
    seed: int | None = None,
) -> Iterator[Desk]:
    """Writes a workspace unless it is there, and takes its submissions.

    Args:
        task: The task.
        folder: The workspace.
        run: The run folder; it must lie outside of the workspace.
        device: A device name.
        submissions: The budget. A workspace that continues has what is left of it.
        reward: A reward, as for :func:`kernel_gym.rewards.get_reward`.
        seed: Seed of unseen workloads and data; by default each submission draws its own.

    Raises:
        WorkspaceError: The folder has other files or another task, or holds the run folder.
        StoreError: The run folder has another run.
    """
    device = resolve(device)
    if folder.resolve() in (run.resolve(), *run.resolve().parents):
        raise WorkspaceError(f"{run} lies in the workspace; give --out another folder")
    if folder.is_dir() and any(folder.iterdir()):
        if not (folder / SETTINGS).exists():
            raise WorkspaceError(
                f"{folder} is no workspace: found other files and no {SETTINGS}, expected a "
                "workspace, an empty folder or none; name another folder"
            )
        stated = read_settings(folder).task
        if stated != task.id:
            raise WorkspaceError(f"{folder}: found a workspace of {stated!r}, not of {task.id!r}")
    else:
        write_workspace(folder, task, device, submissions)
    config = RunConfig(
        policy=POLICY,
        suite=task.id,
        tasks=(task.id,),
        device=device,
        reward=reward,
        turns=submissions + 1,
        seed=seed,
    )
    store = RunStore.start(run, config, resume=True)
    with ExitStack() as stack:
        stack.enter_context(store.session(f"kernel-gym workspace {task.id} {folder}"))
        pool = stack.enter_context(
            make_executor("inline", device=device, seed=seed, secret=store.secret)
        )
        desk = Desk(task, Recorder(store, get_reward(reward)), pool)
        stack.enter_context(desk_server(folder, desk))
        stack.enter_context(mcp_server(folder))
        yield desk
        desk.close()
