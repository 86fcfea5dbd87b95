"""`kernel-gym workspace`: a folder for a coding agent, and the judge beside it."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernel_gym.commands.common import (
    BAD_INPUT,
    FAILED,
    DeviceOption,
    RewardOption,
    SeedOption,
    TaskArgument,
    console,
    note,
    one_line_errors,
)

if TYPE_CHECKING:
    from kernel_gym.records import Evaluation
    from kernel_gym.tasks import Task


def workspace(
    task_id: TaskArgument,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to write.")],
    device: DeviceOption = "auto",
    submissions: Annotated[int, typer.Option(min=1, max=63, help="The agent's budget.")] = 10,
    service: Annotated[
        str, typer.Option(help="Submit to this service, such as http://judge:8000.")
    ] = "",
    out: Annotated[
        Path | None, typer.Option(help="The judge's run folder; by default DIR.run, beside DIR.")
    ] = None,
    verdict: Annotated[
        bool, typer.Option("--verdict", help="Only evaluate the kernel file of DIR, from outside.")
    ] = False,
    reward: RewardOption = "kernel-opt",
    seed: SeedOption = None,
) -> None:
    """Write a workspace, take the submissions of ./check until interrupted, give the verdict.

    With --service the folder is written and the service takes the submissions. An existing
    workspace continues with what is left of its budget. The verdict is a fresh evaluation of the
    kernel file, made here and not in the folder; exit code 1 if it does not pass.

    Example: kernel-gym workspace triton2triton/softmax work --device sim:gfx942
    """
    from kernel_gym.tasks import get_task

    run = out or folder.with_name(folder.name + ".run")
    with one_line_errors():
        task = get_task(task_id)
        if verdict:
            evaluation = _judged(task, folder, device, seed)
        elif service:
            _write_remote(task, folder, service, reward, submissions)
            return
        else:
            evaluation = _attended(task, folder, run, device, submissions, reward, seed)
    _show(task, evaluation)


def _write_remote(task: Task, folder: Path, service: str, reward: str, submissions: int) -> None:
    """Writes a workspace whose submissions go to a session of a service."""
    import os

    from kernel_gym.agents.workspace import Remote, require_empty, write_workspace
    from kernel_gym.client import Client, ServiceError

    require_empty(folder)  # before a session is opened
    try:
        with Client(service, os.environ.get("KERNEL_GYM_TOKEN"), patience=30) as client:
            session = client.session(task.id, reward=reward, max_turns=submissions)
            token = client.session_token(session.info.id)
            device = client.info().device
    except ServiceError as error:
        note(f"error: {service}: {error}")
        raise typer.Exit(BAD_INPUT) from None
    write_workspace(folder, task, device, submissions, Remote(service, session.info.id, token))
    console.print(f"workspace: {folder}; its submissions go to {service}", soft_wrap=True)


def _attended(
    task: Task,
    folder: Path,
    run: Path,
    device: str,
    submissions: int,
    reward: str,
    seed: int | None,
) -> Evaluation | None:
    """Serves the desk of a workspace until a signal, then evaluates the file that is left."""
    from kernel_gym.agents.attend import attended
    from kernel_gym.agents.workspace import read_kernel

    over = threading.Event()
    before = {s: signal.signal(s, lambda *_: over.set()) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        with attended(task, folder, run, device, submissions, reward, seed) as desk:
            note(f"workspace: {folder}; {desk.left} submissions left; Ctrl-C ends it")
            over.wait()
            source, problem = read_kernel(folder, task)
            evaluation = desk.verdict(source, problem)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if problem:
        note(problem)
    note(f"run folder: {run}")
    return evaluation


def _judged(task: Task, folder: Path, device: str, seed: int | None) -> Evaluation | None:
    """Evaluates the kernel file of a workspace once, with draws that nobody knows."""
    from kernel_gym.agents.workspace import WorkspaceError, read_kernel, read_settings
    from kernel_gym.evaluator import Evaluator
    from kernel_gym.storage.secret import RunSecret

    stated = read_settings(folder).task
    if stated != task.id:
        raise WorkspaceError(f"{folder}: found a workspace of {stated!r}, expected {task.id!r}")
    source, problem = read_kernel(folder, task)
    if source is None:
        raise WorkspaceError(f"{folder}: {problem}")
    with Evaluator(device=device, seed=seed, secret=RunSecret.fresh()) as evaluator:
        return evaluator.evaluate(task, source)


def _show(task: Task, evaluation: Evaluation | None) -> None:
    from kernel_gym.feedback import feedback
    from kernel_gym.records import Outcome

    if evaluation is not None:
        text: object = feedback(task, evaluation)
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    if evaluation is None or evaluation.outcome is not Outcome.PASSED:
        raise typer.Exit(FAILED)
