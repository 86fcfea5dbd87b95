"""SkyRL: an environment of `skyrl_gym` 0.4.

Register it before training and name it in the column `env_class` of the dataset, as
`kernel-gym tasks export --format skyrl` does:

    from kernel_gym.envs.adapters.skyrl import register
    register()

SkyRL sums the rewards of steps, so that a step pays the increment of the episode's reward. It takes
numbers only: a masked step raises `MaskedEvaluation`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import skyrl_gym
from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput

from kernel_gym.envs.adapters.scoring import facts, process_sessions
from kernel_gym.envs.sessions import Sessions
from kernel_gym.episodes.reply import extract_source

NAME = "kernel_gym"


class SkyRLKernelEnv(BaseTextEnv):
    """One episode: each reply of the model is a submission, and the answer is its feedback.

    Args:
        env_config: `max_turns`, the submissions of an episode (default 3).
        extras: The columns of the row: `task`, or `reward_spec` with the task id as
            `ground_truth`; `max_turns` and `seed` if they differ from row to row.
        sessions: Begins the episode; by default those of the process.

    Raises:
        UnknownName: There is no such task; the message has near matches.
        ValueError: The row names no task.
    """

    def __init__(
        self,
        env_config: object = None,
        extras: Mapping[str, Any] | None = None,
        sessions: Sessions | None = None,
    ) -> None:
        super().__init__()
        extras = extras or {}
        task = extras.get("task") or (extras.get("reward_spec") or {}).get("ground_truth")
        if not task:
            raise ValueError(
                f"the row has no task: found columns {sorted(extras)}, expected 'task'"
            )
        config = env_config if isinstance(env_config, Mapping) else vars(env_config or object)
        self.max_turns = int(extras.get("max_turns") or config.get("max_turns") or 3)
        self._session = (sessions or process_sessions()).begin(
            str(task), extras.get("seed"), max_turns=self.max_turns
        )

    def init(self, prompt: list[dict[str, str]]) -> tuple[list[dict[str, str]], dict[str, object]]:
        """The prompt of the row; without one, the prompt of the task."""
        shown = prompt or [{"role": "user", "content": self._session.prompt}]
        return shown, {"task": self._session.task.id}

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Evaluates the submission in a reply.

        Raises:
            MaskedEvaluation: The machine failed and not the submission.
        """
        step = self._session.submit(extract_source(action, self._session.task))
        self.turns = step.turn
        answer = [] if step.done else [{"role": "user", "content": step.feedback}]
        return BaseTextEnvStepOutput(
            observations=answer, reward=step.number(), done=step.done, metadata=facts(step)
        )

    def get_metrics(self) -> dict[str, object]:
        """The reward and the best speedup of the episode."""
        reward = self._session.reward
        return {
            "best_speedup": self._session.best_speedup,
            **({} if reward is None else {"episode_reward": reward}),
        }


def register() -> None:
    """Registers the environment in `skyrl_gym` as `kernel_gym`; a second call does nothing."""
    if NAME not in skyrl_gym.registry:
        skyrl_gym.register(id=NAME, entry_point=f"{__name__}:SkyRLKernelEnv")
