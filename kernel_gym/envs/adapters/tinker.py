"""Tinker: episodes as message environments of `tinker_cookbook` 0.6, with their builders.

Tinker sums the rewards of steps, so that a step pays the increment of the episode's reward. It
takes numbers only: a masked step raises `MaskedEvaluation`. Set `rollout_error_tolerance` in the
trainer's configuration to leave such a rollout out instead of ending the training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import chz
from tinker_cookbook import model_info, renderers
from tinker_cookbook.renderers.base import Message
from tinker_cookbook.rl.message_env import EnvFromMessageEnv, MessageEnv, MessageStepResult
from tinker_cookbook.rl.types import Env, EnvGroupBuilder, RLDataset, RLDatasetBuilder
from tinker_cookbook.tokenizer_utils import get_tokenizer

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


@dataclass(frozen=True)
class KernelGroup(EnvGroupBuilder):
    """A group of episodes on one task with one seed. It is plain data and can be pickled."""

    task: str
    group_size: int
    model: str
    renderer: str
    max_turns: int
    seed: int

    async def make_envs(self) -> Sequence[Env]:
        """Begins the episodes."""
        renderer = renderers.get_renderer(self.renderer, get_tokenizer(self.model))
        episodes = [
            KernelMessageEnv(self.task, self.max_turns, self.seed) for _ in range(self.group_size)
        ]
        return [EnvFromMessageEnv(renderer, episode) for episode in episodes]

    def logging_tags(self) -> list[str]:
        """Tags of the metrics."""
        return ["kernel_gym", self.task]


class KernelDataset(RLDataset):
    """Batches of groups; each group has its own seed."""

    def __init__(self, groups: Sequence[KernelGroup], batch: int) -> None:
        self._groups, self._batch = groups, batch

    def get_batch(self, index: int) -> Sequence[EnvGroupBuilder]:
        """The groups of one step."""
        return self._groups[index * self._batch : (index + 1) * self._batch]

    def __len__(self) -> int:
        return -(-len(self._groups) // self._batch)


@chz.chz
class KernelDatasetBuilder(RLDatasetBuilder):
    """Makes the dataset: `steps` batches of `batch` groups over the tasks in turn."""

    model_name_for_tokenizer: str
    tasks: tuple[str, ...]
    steps: int = 100
    batch: int = 8
    group_size: int = 8
    max_turns: int = 3

    async def __call__(self) -> tuple[KernelDataset, None]:
        """Returns the dataset; there is none for tests."""
        model = self.model_name_for_tokenizer
        groups = [
            KernelGroup(
                self.tasks[number % len(self.tasks)],
                self.group_size,
                model,
                model_info.get_recommended_renderer_name(model),
                self.max_turns,
                number,
            )
            for number in range(self.steps * self.batch)
        ]
        return KernelDataset(groups, self.batch), None
