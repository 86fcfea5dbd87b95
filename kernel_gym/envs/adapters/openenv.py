"""OpenEnv: a server of episodes, and its client.

Each session of the server is an episode. All sessions share one executor, so that no more
evaluations run at the same time than there are workers. Clients sum the rewards of steps, so that
the reward of a step is the increment of the episode's reward. It needs the extra `openenv`.

    python -m kernel_gym.envs.adapters.openenv --task quickstart --port 8000
"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from openenv.core import EnvClient
from openenv.core.client_types import StepResult
from openenv.core.env_server import Action, Environment, Observation, State, create_fastapi_app

from kernel_gym.envs.sessions import Sessions
from kernel_gym.episodes.session import EpisodeOver, EpisodeSession, MaskedEvaluation
from kernel_gym.executors import Executor, make_executor
from kernel_gym.executors.supervised import DEADLINE

WAIT = DEADLINE + 60.0
"""Seconds for which a client waits for an answer."""


class KernelAction(Action):
    """A submission."""

    source: str
    """The source text of a kernel. Any text is a submission."""


class KernelObservation(Observation):
    """An observation. `reward` is the increment of the episode's reward; None if masked."""

    task: str
    """The prompt."""
    feedback: str = ""
    best_speedup: float = 0.0
    """Lower bound of the speedup of the best correct submission; 0.0 before there is one."""
    submission_reward: float | None = None
    """The reward of the last submission alone; None if it is masked."""
    outcome: str = ""
    """The outcome of the last evaluation. After `infra` the machine failed: leave that step out."""


class KernelState(State):
    """The state of an episode; `step_count` is the number of its submissions."""

    task: str = ""
    """The task id."""
    episode_reward: float | None = None
    """The reward of the episode so far; None before the first submission."""


class KernelEnvironment(Environment[KernelAction, KernelObservation, KernelState]):
    """Episodes of `KernelOpt-v0` for OpenEnv's server.

    Args:
        sessions: Begins the episodes; it stays open.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, sessions: Sessions) -> None:
        super().__init__()
        self._sessions = sessions
        self._session: EpisodeSession | None = None
        self._state = KernelState()

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        task: str | None = None,
        **kwargs: Any,
    ) -> KernelObservation:
        """Begins an episode.

        Args:
            seed: Seed of the task drawn, the unseen workloads and the data.
            episode_id: A name for the episode.
            task: A task id or suite; by default the tasks of the server.
            **kwargs: Refused.

        Returns:
            The prompt.

        Raises:
            ValueError: An argument or the task is unknown.
            KeyError: The task is unknown; the message has near matches.
        """
        if kwargs:
            raise ValueError(f"unknown reset argument {sorted(kwargs)[0]!r}; known: seed, task")
        self._session = session = self._sessions.begin(task, seed)
        self._state = KernelState(episode_id=episode_id, task=session.task.id)
        return KernelObservation(task=session.prompt)

    def step(
        self, action: KernelAction, timeout_s: float | None = None, **kwargs: Any
    ) -> KernelObservation:
        """Evaluates a submission.

        Args:
            action: The submission.
            timeout_s: Not used, since evaluations have their own limits.
            **kwargs: Not used.

        Returns:
            The feedback, with the increment of the episode's reward.

        Raises:
            EpisodeOver: No episode is in progress.
            MaskedEvaluation: The episode is over and the machine failed in every turn. Clients
                would sum the rewards of its steps to 0.
        """
        if self._session is None:
            raise EpisodeOver("no episode is in progress: call reset() first")
        step = self._session.submit(action.source)
        self._state.step_count = step.turn
        self._state.episode_reward = step.episode_reward
        if step.done and step.episode_reward is None:
            raise MaskedEvaluation("the machine failed in every turn: leave this episode out")
        return KernelObservation(
            task=self._session.prompt,
            feedback=step.feedback,
            best_speedup=self._session.best_speedup,
            submission_reward=step.reward,
            outcome=str(step.evaluation.outcome),
            reward=step.increment,
            done=step.done,
        )

    @property
    def state(self) -> KernelState:
        """The state of the episode."""
        return self._state


class KernelClient(EnvClient[KernelAction, KernelObservation, KernelState]):
    """A client of the server: `KernelClient(base_url="http://localhost:8000").sync()`.

    Args:
        base_url: The URL of the server; None if a provider starts one.
        message_timeout_s: Seconds to wait for an answer; by default the deadline of an evaluation
            and one minute more. Increase it if many sessions share few workers, because a step then
            also waits for the evaluations before it.
        **kwargs: As for `openenv.core.EnvClient`.
    """

    def __init__(
        self, base_url: str | None = None, message_timeout_s: float = WAIT, **kwargs: Any
    ) -> None:
        super().__init__(base_url, message_timeout_s=message_timeout_s, **kwargs)

    def _step_payload(self, action: KernelAction) -> dict[str, Any]:
        return action.model_dump()

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[KernelObservation]:
        reward, done = payload.get("reward"), bool(payload.get("done"))
        shown = KernelObservation(**payload["observation"], reward=reward, done=done)
        return StepResult(shown, reward, done, payload.get("metadata"))

    def _parse_state(self, payload: dict[str, Any]) -> KernelState:
        return KernelState(**payload)


def make_app(executor: Executor, sessions: int, **kwargs: Any) -> Any:
    """The server, as an ASGI application.

    Args:
        executor: Evaluates submissions; it stays open.
        sessions: Most episodes at the same time; another one is refused.
        **kwargs: As for :class:`~kernel_gym.envs.sessions.Sessions`.

    Returns:
        A FastAPI application with OpenEnv's routes.

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
