"""`verifiers`: the environment for its evaluations and trainers. Needs the extra `verifiers`.

It is a `MultiTurnEnv` of the classic stack, which trainers take: a chat in which each reply holds a
submission and is answered with feedback.
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
    """One task a row of the dataset, one submission a reply: the block that defines the function.

    Rollouts run side by side, as many evaluations at a time as the executor has workers. When the
    machine failed in every turn, the rollout ends with an `InfraError`, and its reward means
    nothing.

    Args:
        executor: Where evaluations run.
        task: The tasks, one row each; weights only say which are among them.
        owned: Close the executor with the environment.
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
            InfraError: The machine failed in every turn of the episode, which is over.
        """
        episode: TextEpisode = state["episode"]
        source = extract_source(_text(messages[-1]), get_task(episode.task))
        told = await asyncio.to_thread(episode.submit, source)
        answer = [{"role": "user", "content": told}]
        if episode.over:
            state["final_env_response"] = answer
            if episode.reward() is None:
                raise vf.InfraError("no submission of the episode could be evaluated")
        return answer

    @vf.teardown
    async def close_executor(self) -> None:
        """Ends the workers, where they are this environment's own."""
        if self._owned:
            self._executor.close()

    def _make(self, task_id: str) -> TextEpisode:
        return TextEpisode(self._executor, task=task_id, **self._kwargs)


async def kernel_reward(state: Any) -> float:
    """The reward of the episode, by which `verifiers` names it."""
    reward = await asyncio.to_thread(state["episode"].reward)
    return 0.0 if reward is None else reward


def load_environment(
    task: TaskChoice = DEFAULT_SUITE, device: str = "auto", workers: int = 2, **kwargs: Any
) -> KernelChat:
    """What `verifiers` looks for in the module of an environment.

    Args:
        task: The tasks.
        device: A device name.
        workers: Evaluations at a time.
        **kwargs: As for :class:`~kernel_gym.envs.adapters.episode.TextEpisode`.

    Returns:
        The environment; its workers end with it.

    Raises:
        ValueError: A name is unknown or a number out of range.
    """
    executor = make_executor("local", device=device, workers=workers)
    try:
        return KernelChat(executor, task, owned=True, **kwargs)
    except Exception:
        executor.close()
        raise


def _text(message: Any) -> str:
    """What a reply says; what is no text, such as an image, is no submission."""
    found = message["content"] if isinstance(message, dict) else message.content
    return found if isinstance(found, str) else ""
