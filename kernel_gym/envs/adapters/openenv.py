"""OpenEnv: a server of episodes; :mod:`kernel_gym.envs.adapters.openenv_client` has its client.

Each session of the server is an episode. All sessions share one executor, so that no more
evaluations run at the same time than there are workers. It needs the extra `openenv`.

    python -m kernel_gym.envs.adapters.openenv --task quickstart --port 8000
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from kernel_gym.envs.sessions import Sessions
from kernel_gym.executors import Executor, make_executor
from kernel_gym.extras import missing_extra

try:
    from fastapi import FastAPI
    from openenv.core.env_server import create_fastapi_app

    from kernel_gym.envs.adapters.openenv_client import KernelAction, KernelObservation, KernelState
    from kernel_gym.envs.adapters.openenv_environment import KernelEnvironment
except ModuleNotFoundError as error:
    if __name__ != "__main__":
        raise
    raise SystemExit(missing_extra(error) or str(error)) from None


def make_app(executor: Executor, sessions: int, **kwargs: Any) -> FastAPI:
    """The server, as an ASGI application.

    Args:
        executor: Evaluates submissions; it stays open.
        sessions: Most episodes at the same time; another one is refused.
        **kwargs: As for :class:`~kernel_gym.envs.sessions.Sessions`.

    Raises:
        ValueError: A name is unknown or a number is out of range. It is raised here and not in a
            session.
    """
    begins = Sessions(executor, **kwargs)
    return create_fastapi_app(
        lambda: KernelEnvironment(begins),
        KernelAction,
        KernelObservation,
        max_concurrent_envs=sessions,
        env_name="kernel_gym",
        state_cls=KernelState,
    )


def serve(
    task: Annotated[str, typer.Option(help="A task id or suite.")] = "quickstart",
    device: Annotated[str, typer.Option(help="A device name.")] = "auto",
    reward: Annotated[str, typer.Option(help="A reward.")] = "kernel-opt",
    max_turns: Annotated[int, typer.Option(help="Submissions an episode.")] = 3,
    sessions: Annotated[int, typer.Option(help="Episodes at a time.")] = 8,
    workers: Annotated[int, typer.Option(help="Evaluations at a time.")] = 2,
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Where to listen.")] = 8000,
) -> None:
    """Serves episodes over OpenEnv's protocol until interrupted, without authentication."""
    import uvicorn

    with make_executor("local", device=device, workers=workers) as executor:
        app = make_app(executor, sessions, task=task, reward=reward, max_turns=max_turns)
        uvicorn.run(app, host=host, port=port)


if __name__ == "__main__":
    typer.run(serve)
