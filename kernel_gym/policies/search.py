"""Random schedule search: kernels from a problem's templates, drawn without a model."""

from __future__ import annotations

import random

from kernel_gym.episodes.episode import Episode
from kernel_gym.policies.base import Scripted
from kernel_gym.tasks.variants import Variant, variants


class ScheduleSearch(Scripted):
    """Submits variants of a task's templates in random order, each once.

    A task whose problem has no templates, or which is not in Triton, gets no submission.

    Args:
        seed: What the order is drawn from, for each task and sample by itself.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def submit(self, episode: Episode) -> str | None:
        """The next variant of the order."""
        order = self.order(episode)
        return order[len(episode.turns)].source if len(episode.turns) < len(order) else None

    def order(self, episode: Episode) -> list[Variant]:
        """All variants in the order in which they are submitted."""
        task = episode.task
        found = list(variants(task.problem)) if task.language == "triton" else []
        again = f"/{episode.sample}" if episode.sample > 1 else ""
        random.Random(f"{self.seed}/{task.id}{again}").shuffle(found)
        return found
