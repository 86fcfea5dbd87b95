"""OpenEnv: the episodes behind the server in :mod:`kernel_gym.envs.adapters.openenv`.

Clients sum the rewards of steps, so that the reward of a step is the increment of the episode's
reward.
"""

from __future__ import annotations

from openenv.core.env_server import Environment

from kernel_gym.envs.adapters.openenv_client import KernelAction, KernelObservation, KernelState
from kernel_gym.envs.sessions import Sessions
from kernel_gym.episodes.session import EpisodeOver, EpisodeSession, MaskedEvaluation


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
        **kwargs: object,
    ) -> KernelObservation:
        """Begins an episode and gives its prompt.

        Args:
            seed: Seed of the task drawn, the unseen workloads and the data.
            episode_id: A name for the episode.
            task: A task id or suite; by default the tasks of the server.
            **kwargs: Refused.

        Raises:
            ValueError: An argument is unknown.
            KeyError: The task is unknown; the message has near matches.
        """
        if kwargs:
            raise ValueError(f"unknown reset argument {sorted(kwargs)[0]!r}; known: seed, task")
        self._session = session = self._sessions.begin(task, seed)
        self._state = KernelState(episode_id=episode_id, task=session.task.id)
        return KernelObservation(task=session.prompt)

    def step(
        self, action: KernelAction, timeout_s: float | None = None, **kwargs: object
    ) -> KernelObservation:
        """Evaluates a submission; `timeout_s` is not used, evaluations have their own limits.

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
