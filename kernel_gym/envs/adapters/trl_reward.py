"""TRL: a reward function for `GRPOTrainer(reward_funcs=...)`; each completion is a submission.

The whole batch is evaluated in parallel. `rows` makes the matching dataset.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kernel_gym.devices import describe
from kernel_gym.envs.choice import TaskChoice, TaskSampler
from kernel_gym.episodes.reply import extract_source
from kernel_gym.executors import Executor
from kernel_gym.rewards import Context, get_reward
from kernel_gym.tasks import get_task, prompt, train_workloads


class KernelReward:
    """Scores completions on the tasks in the dataset's column `task`.

    Args:
        executor: Evaluates submissions; it must stay open until training ends.
        reward: As for `KernelOpt-v0`.

    Example:
        >>> from kernel_gym.executors import make_executor
        >>> with make_executor("inline", device="sim:gfx942") as executor:
        ...     reward = KernelReward(executor)
        ...     reward(completions=["not a kernel"], task=["triton2triton/softmax"])
        [0.02]
    """

    __name__ = "kernel_reward"

    def __init__(
        self, executor: Executor, reward: str | Callable[..., object] = "kernel-opt"
    ) -> None:
        self.executor, self._reward = executor, get_reward(reward)

    def __call__(
        self, completions: Sequence[object], task: Sequence[str], **_: object
    ) -> list[float | None]:
        """The rewards of a batch.

        Args:
            completions: Texts, or chats that end with the model's message.
            task: The task id of each completion.

        Returns:
            One reward for each completion; None, which TRL ignores, if the machine failed.
        """
        sources = [
            extract_source(_text(completion), get_task(name))
            for completion, name in zip(completions, task, strict=True)
        ]
        futures = [
            self.executor.submit(name, source) for name, source in zip(task, sources, strict=True)
        ]
        return [
            self._reward(future.result(), Context().of(source)).value
            for future, source in zip(futures, sources, strict=True)
        ]


def rows(task: TaskChoice, device: str) -> list[dict[str, object]]:
    """The rows of a dataset: `prompt`, a chat, and `task`, for :class:`KernelReward`.

    Args:
        task: A task id, a suite, or several ids.
        device: The device whose facts the prompts state.
    """
    described = describe(device)
    dataset: list[dict[str, object]] = []
    for name in TaskSampler(task, described.arch).probabilities:
        known = get_task(name)
        workloads = train_workloads(known.problem, described.scale)
        text = prompt(
            known, described.facts, workloads, described.spec.arch, embedded=described.embedded
        )
        dataset.append({"prompt": [{"role": "user", "content": text}], "task": name})
    return dataset


def _text(completion: Any) -> str:
    """The text of a completion, which is a text or a chat."""
    content = completion if isinstance(completion, str) else completion[-1]["content"]
    return content if isinstance(content, str) else ""
