"""OpenEnv: the messages of the server in :mod:`kernel_gym.envs.adapters.openenv`, and its client.

    from kernel_gym.envs.adapters.openenv_client import KernelAction, KernelClient

It needs the extra `openenv`.
"""

from __future__ import annotations

from typing import Any

from openenv.core import EnvClient
from openenv.core.client_types import StepResult
from openenv.core.env_server import Action, Observation, State

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
        self, base_url: str | None = None, message_timeout_s: float = WAIT, **kwargs: object
    ) -> None:
        super().__init__(base_url, message_timeout_s=message_timeout_s, **kwargs)

    def _step_payload(self, action: KernelAction) -> dict[str, object]:
        return action.model_dump()

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[KernelObservation]:
        reward, done = payload.get("reward"), bool(payload.get("done"))
        shown = KernelObservation(**payload["observation"], reward=reward, done=done)
        return StepResult(shown, reward, done, payload.get("metadata"))

    def _parse_state(self, payload: dict[str, object]) -> KernelState:
        return KernelState(**payload)
