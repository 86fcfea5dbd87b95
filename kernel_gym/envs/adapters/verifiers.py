"""`verifiers`: an environment for its evaluations and trainers. It needs the extra `verifiers`.

It is a `MultiTurnEnv` of the classic API, which trainers use: a chat in which each reply has a
submission, and the answer is its feedback.
"""

from __future__ import annotations

import asyncio
from typing import Any

import verifiers as vf

from kernel_gym.devices import describe
from kernel_gym.envs.adapters.episode import TextEpisode
from kernel_gym.envs.choice import TaskChoice, Tasks
from kernel_gym.envs.kernel_opt import DEFAULT_SUITE
from kernel_gym.episodes.reply import extract_source
from kernel_gym.executors import Executor, make_executor
from kernel_gym.tasks import get_task


class KernelChat(vf.MultiTurnEnv):
    """A dataset with one row per task; each reply submits the block that defines the function.

    Rollouts run in parallel on the workers of the executor. If the machine failed in every turn,
    the rollout ends with an `InfraError` and its reward has no meaning.

    Args:
        executor: Evaluates submissions.
        task: The tasks, one row each; their weights are ignored.
        owned: Whether to close the executor with the environment.
        **kwargs: As for :class:`~kernel_gym.envs.adapters.episode.TextEpisode`.
    """

    def __init__(
        self,
        executor: Executor,
        task: TaskChoice = DEFAULT_SUITE,
        owned: bool = False,
        **kwargs: Any,
    ) -> None:
        from datasets import Dataset

        self._executor, self._owned = executor, owned
        self._kwargs = {"device": executor.device, **kwargs}
        rows = [
            {
                "prompt": [{"role": "user", "content": self._make(task_id).begin()}],
                "answer": "",
                "info": {"kernel_task": task_id},
            }
            for task_id in Tasks(task, describe(executor.device).arch).probabilities
        ]
        rubric = vf.Rubric(funcs=[kernel_reward])
        super().__init__(dataset=Dataset.from_list(rows), rubric=rubric)

    async def setup_state(self, state: Any) -> Any:
        """Begins the episode of a rollout."""
        state["episode"] = self._make(state["info"]["kernel_task"])
        await asyncio.to_thread(state["episode"].begin)
        return state

    async def env_response(self, messages: Any, state: Any, **_: Any) -> list[dict[str, str]]:
        """Evaluates the submission in the last reply and answers with feedback.

        Raises:
            InfraError: The episode is over and the machine failed in every turn.
        """
        episode: TextEpisode = state["episode"]
        source = extract_source(_text(messages[-1]), get_task(episode.task))
        feedback = await asyncio.to_thread(episode.submit, source)
        answer = [{"role": "user", "content": feedback}]
        if episode.over:
            state["final_env_response"] = answer
            if episode.reward() is None:
                raise vf.InfraError("no submission of the episode could be evaluated")
        return answer

    @vf.teardown
    async def close_executor(self) -> None:
        """Closes the executor if this environment owns it."""
        if self._owned:
            self._executor.close()

    def _make(self, task_id: str) -> TextEpisode:
        return TextEpisode(self._executor, task=task_id, **self._kwargs)


async def kernel_reward(state: Any) -> float:
    """The reward of the episode. `verifiers` shows the name of this function."""
    reward = await asyncio.to_thread(state["episode"].reward)
    return 0.0 if reward is None else reward


def load_environment(
    task: TaskChoice = DEFAULT_SUITE, device: str = "auto", workers: int = 2, **kwargs: Any
) -> KernelChat:
    """Makes the environment; `verifiers` calls this function of an environment module.

    Args:
        task: The tasks.
        device: A device name.
        workers: Most evaluations at the same time.
        **kwargs: As for :class:`~kernel_gym.envs.adapters.episode.TextEpisode`.

    Returns:
        The environment; it owns its workers.

    Raises:
        ValueError: A name is unknown or a number is out of range.
    """
    executor = make_executor("local", device=device, workers=workers)
    try:
        return KernelChat(executor, task, owned=True, **kwargs)
    except Exception:
        executor.close()
        raise


def _text(message: Any) -> str:
    """The text of a reply; "" for other content, such as an image."""
    content = message["content"] if isinstance(message, dict) else message.content
    return content if isinstance(content, str) else ""
