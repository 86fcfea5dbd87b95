"""`kernel-gym mcp`: an MCP server for coding agents."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from kernel_gym.commands.common import (
    BAD_INPUT,
    DeviceOption,
    RewardOption,
    SuiteOption,
    note,
    one_line_errors,
)

if TYPE_CHECKING:
    from kernel_gym.agents.backends import ToolBackend


def mcp(
    suite: SuiteOption = "quickstart",
    device: DeviceOption = "auto",
    submissions: Annotated[int, typer.Option(min=1, max=63, help="Submissions a task.")] = 20,
    service: Annotated[str, typer.Option(help="Submit to this service.")] = "",
    workspace: Annotated[
        Path | None, typer.Option(help="Submit to the judge of this workspace.")
    ] = None,
    http: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Serve HTTP on this port of 127.0.0.1, not stdio."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Keep the submissions in this run folder.")
    ] = None,
    reward: RewardOption = "kernel-opt",
) -> None:
    """Serve the tools list_tasks, show_task, submit_kernel, profile_kernel and best_so_far.

    Without --service and --workspace, kernels are evaluated in this process.

    Example: kernel-gym mcp --suite quickstart --device sim:gfx942
    """
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        note("error: mcp is missing; pip install 'kernel-gym[mcp]'")
        raise typer.Exit(BAD_INPUT)
    if service and workspace:
        note("error: give --service or --workspace, not both")
        raise typer.Exit(BAD_INPUT)
    with one_line_errors(), ExitStack() as stack:
        from kernel_gym.agents.backends import ServiceTasks, WorkspaceTask
        from kernel_gym.agents.mcp_server import listen, make_server, serve_http

        backend: ToolBackend
        if workspace:
            backend = WorkspaceTask(workspace)
        elif service:
            backend = ServiceTasks(service, os.environ.get("KERNEL_GYM_TOKEN"), submissions)
        else:
            backend = stack.enter_context(_local(suite, device, submissions, out, reward))
        server = make_server(backend)
        if http is None:
            server.run("stdio")
        else:
            listener = listen(http)
            note(f"the MCP server is running on http://127.0.0.1:{listener.getsockname()[1]}/mcp")
            serve_http(server, listener)


@contextmanager
def _local(
    suite: str, device: str, submissions: int, out: Path | None, reward: str
) -> Iterator[ToolBackend]:
    """A judge in this process, whose submissions are kept in a run folder."""
    from kernel_gym.agents.backends import LocalTasks
    from kernel_gym.agents.desk import Recorder
    from kernel_gym.devices import resolve
    from kernel_gym.executors import make_executor
    from kernel_gym.policies.evaluate import runnable
    from kernel_gym.rewards import get_reward
    from kernel_gym.storage.run_records import RunConfig
    from kernel_gym.storage.run_store import RunStore
    from kernel_gym.tasks import load_suite

    device = resolve(device)
    tasks = runnable(load_suite(suite).tasks, device, note)
    config = RunConfig(
        policy="mcp",
        suite=suite,
        tasks=tuple(task.id for task in tasks),
        device=device,
        reward=reward,
        turns=submissions + 1,
    )
    with ExitStack() as stack:
        folder = out or Path(stack.enter_context(TemporaryDirectory(prefix="kernel-gym-")))
        store = RunStore.start(folder, config, resume=True)
        pool = stack.enter_context(make_executor("inline", device=device, secret=store.secret))
        yield LocalTasks(tasks, Recorder(store, get_reward(reward)), pool, device)
