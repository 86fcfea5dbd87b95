"""Tinker: episodes as message environments of `tinker_cookbook` 0.6.

:mod:`kernel_gym.envs.adapters.tinker_dataset` has the dataset of their groups.

Tinker sums the rewards of steps, so that a step pays the increment of the episode's reward. It
takes numbers only: a masked step raises `MaskedEvaluation`. Set `rollout_error_tolerance` in the
trainer's configuration to leave such a rollout out instead of ending the training.
"""

from __future__ import annotations

from tinker_cookbook.renderers.base import Message
from tinker_cookbook.rl.message_env import MessageEnv, MessageStepResult

from kernel_gym.envs.adapters.scoring import facts, process_sessions, text_of
from kernel_gym.envs.sessions import Sessions
from kernel_gym.episodes.reply import extract_source


class KernelMessageEnv(MessageEnv):
    """One episode: each message of the model is a submission, and the answer is its feedback.

    Args:
        task: The task id.
        max_turns: Submissions of the episode.
        seed: Seed of the episode; by default the system's randomness.
        sessions: Begins the episode; by default those of the process.
    """

    def __init__(
        self,
        task: str,
        max_turns: int = 3,
        seed: int | None = None,
        sessions: Sessions | None = None,
    ) -> None:
        self._session = (sessions or process_sessions()).begin(task, seed, max_turns=max_turns)
        self._messages: list[Message] = [{"role": "user", "content": self._session.prompt}]
        self.example_id = self._session.task.id

    async def initial_observation(self) -> list[Message]:
        """The prompt of the task."""
        return self._messages

    async def step(self, message: Message) -> MessageStepResult:
        """Evaluates the submission in a message.

        Raises:
            MaskedEvaluation: The machine failed and not the submission.
        """
        source = extract_source(text_of(message), self._session.task)
        step = await self._session.submit_async(source)
        self._messages += [message, {"role": "user", "content": step.feedback}]
        return MessageStepResult(
            reward=step.number(),
            episode_done=step.done,
            next_messages=self._messages,
            metrics=facts(step),
        )
