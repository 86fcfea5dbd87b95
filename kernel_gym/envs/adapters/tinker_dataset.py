"""Tinker: groups of the episodes in :mod:`kernel_gym.envs.adapters.tinker`, and their dataset.

`dataset_builder=KernelDatasetBuilder(...)` in the configuration of `tinker_cookbook.rl.train`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import chz
from tinker_cookbook import model_info, renderers
from tinker_cookbook.rl.message_env import EnvFromMessageEnv
from tinker_cookbook.rl.types import Env, EnvGroupBuilder, RLDataset, RLDatasetBuilder
from tinker_cookbook.tokenizer_utils import get_tokenizer

from kernel_gym.envs.adapters.tinker import KernelMessageEnv


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
