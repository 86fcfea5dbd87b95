"""`kernel-gym serve`: the evaluation service."""

from __future__ import annotations

import ipaddress
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernel_gym.commands.common import (
    BAD_INPUT,
    DeviceOption,
    executor_arguments,
    note,
    one_line_errors,
)

if TYPE_CHECKING:
    from types import FrameType

    from kernel_gym.executors import Executor
    from kernel_gym.service.settings import ServiceSettings

GRACE = 30
"""Seconds in which open requests are answered after a signal to stop."""


def serve(
    device: DeviceOption = "auto",
    executor: Annotated[
        str, typer.Option(help="Where evaluations run: inline, local or ray.")
    ] = "local",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Evaluations at a time; by default as many as fit.")
    ] = None,
    folder: Annotated[
        Path, typer.Option(help="Keeps the queue and the secret.", file_okay=False)
    ] = Path("runs/service"),
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port.")] = 8000,
    tokens: Annotated[
        Path | None, typer.Option(help="A TOML file with tokens; docs/service.md explains it.")
    ] = None,
    task: Annotated[
        list[str] | None,
        typer.Option(help="A task or suite that requests may name; may be repeated. Default: all."),
    ] = None,
    max_queue: Annotated[int, typer.Option(min=1, help="Most queued submissions.")] = 20_000,
) -> None:
    """Serve evaluations and episodes over HTTP until interrupted.

    A stopped or killed service continues with its queue when it is started on the same folder.

    Example: kernel-gym serve --device sim:gfx942 --workers 2
    """
    _require_installed()
    if tokens is None and not _is_loopback(host):
        note(f"error: --host {host} can be reached from elsewhere: give --tokens FILE")
        raise typer.Exit(BAD_INPUT)
    _require_free(host, port)
    with one_line_errors():
        from kernel_gym.executors import is_service, make_executor, require_executor
        from kernel_gym.service.settings import ServiceSettings, read_tokens
        from kernel_gym.storage.secret import SECRET, kept_secret

        require_executor(executor)
        if is_service(executor):
            raise typer.BadParameter("--executor: found a service, expected inline, local or ray")
        folder.mkdir(parents=True, exist_ok=True)
        settings = ServiceSettings(
            folder, read_tokens(tokens) if tokens else (), tuple(task or ()), max_queue
        )
        arguments = executor_arguments(executor, device, None, workers)
        pool = make_executor(executor, **arguments, secret=kept_secret(folder / SECRET))
    run(settings, pool, host, port)


def run(settings: ServiceSettings, pool: Executor, host: str, port: int) -> None:
    """Serves until a signal, then lets running evaluations end and closes the executor.

    Args:
        settings: What the service allows.
        pool: The executor.
        host: The address to listen on.
        port: The port; 0 for one that the system chooses, which the log names.
    """
    import uvicorn

    from kernel_gym.service.app import make_app
    from kernel_gym.service.slow_headers import TimedHeaders

    app = make_app(settings, pool)
    service = app.state.service

    class Server(uvicorn.Server):
        """Refuses new submissions as soon as a signal arrives."""

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            service.drain_soon()
            super().handle_exit(sig, frame)

    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level="info",
        access_log=False,
        timeout_graceful_shutdown=GRACE,
        limit_concurrency=4096,
        http=TimedHeaders,
    )
    Server(config).run()


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _require_free(host: str, port: int) -> None:
    """Ends the command if nothing can listen there, before workers are started."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        note(f"error: --host {host} --port {port}: {reason}; name another port")
        raise typer.Exit(BAD_INPUT) from None


def _require_installed() -> None:
    from importlib.util import find_spec

    needed = ("fastapi", "uvicorn", "prometheus_client", "httpx")
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        note(f"error: {', '.join(missing)} is missing; pip install 'kernel-gym[service]'")
        raise typer.Exit(BAD_INPUT)
