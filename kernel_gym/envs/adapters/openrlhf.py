"""OpenRLHF 0.11: a reward function for single replies, and an agent for several turns.

OpenRLHF loads a file by its path:

    --reward.remote_url FILE     this file, for the reward function `reward_func`
    --train.agent_func_path FILE this file, for the agent `AgentExecutor`

or takes the URL of a service, which needs nothing of this package on the trainer's machine:

    --reward.remote_url http://judge:8000/v1/openrlhf

The label of a row is the task id. OpenRLHF sums the rewards of an agent's steps, so that a step
pays the increment. It takes numbers only: a masked evaluation raises `MaskedEvaluation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from kernel_gym.envs.adapters.scoring import facts, process_sessions, score_batch
from kernel_gym.episodes.reply import extract_source

if TYPE_CHECKING:
    from kernel_gym.episodes.session import EpisodeSession


def reward_func(
    queries: Sequence[str], prompts: Sequence[str], labels: Sequence[str]
) -> dict[str, object]:
    """The rewards of a batch, which is evaluated in parallel.

    Args:
        queries: Prompts with replies.
        prompts: The prompts.
        labels: Task ids.

    Returns:
        `rewards` and `scores`, fp32 tensors [batch], and numbers to log.

    Raises:
        MaskedEvaluation: The machine failed on one of them.
        UnknownName: A label is no task id; the message has near matches.
    """
    replies = [query.removeprefix(prompt) for query, prompt in zip(queries, prompts, strict=True)]
    steps = score_batch(replies, labels)
    rewards = torch.tensor([step.number() for step in steps], dtype=torch.float32)
    logs = [facts(step) for step in steps]
    extra = {name: torch.tensor([log[name] for log in logs]) for name in logs[0]} if logs else {}
    return {"rewards": rewards, "scores": rewards, "extra_logs": extra}


class KernelAgent:
    """One episode, with the methods of OpenRLHF's `AgentInstanceBase`.

    Each reply of the model is a submission, and the environment's answer is its feedback.
    """

    max_turns = 3
    """Submissions of an episode."""
    seed: int | None = None
    """Seed of the episodes; by default the system's randomness."""
    turn_end = "\n<|im_end|>\n<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
    """How feedback continues the text of a chat; change it for other templates than ChatML."""

    def __init__(self, *_: object, **__: object) -> None:
        self._session: EpisodeSession | None = None

    async def reset(self, states: dict[str, Any], **_: object) -> dict[str, object]:
        """Begins the episode of a row; its observation stays the row's prompt."""
        self._session = process_sessions().begin(
            states["label"], self.seed, max_turns=self.max_turns
        )
        return {"observation": states["observation"]}

    async def step(self, state_dict: dict[str, Any], **_: object) -> dict[str, object]:
        """Evaluates the submission in a reply.

        Raises:
            MaskedEvaluation: The machine failed and not the submission.
        """
        assert self._session is not None, "reset() was not called"
        source = extract_source(state_dict["action_text"], self._session.task)
        step = await self._session.submit_async(source)
        return {
            "rewards": torch.tensor(step.number()),
            "scores": torch.tensor(step.episode_reward),
            "environment_feedback": "" if step.done else self.turn_end.format(step.feedback),
            "done": step.done,
            "sampling_params": state_dict.get("sampling_params"),
            "extra_logs": {name: torch.tensor(value) for name, value in facts(step).items()},
        }


def __getattr__(name: str) -> object:
    """`AgentExecutor`, which OpenRLHF looks for. Its base class needs OpenRLHF to be installed."""
    if name != "AgentExecutor":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from openrlhf.utils.agent import AgentInstanceBase, MultiTurnAgentExecutor

    class Agent(KernelAgent, AgentInstanceBase):
        """The agent with OpenRLHF's base class."""

    class AgentExecutor(MultiTurnAgentExecutor):
        """Plays the agent."""

        def __init__(self) -> None:
            super().__init__(Agent)

    return AgentExecutor
