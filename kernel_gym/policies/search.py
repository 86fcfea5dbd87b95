"""Random search over the kernels that a problem's templates give, without a model."""

from __future__ import annotations

import random

from kernel_gym.episodes.episode import Episode
from kernel_gym.policies.base import Scripted
from kernel_gym.policies.registry import register_policy
from kernel_gym.tasks.variants import Variant, variants


@register_policy("search")
class ScheduleSearch(Scripted):
    """Submits each variant of a task's templates once, in random order.

    A task that is not in Triton, or whose problem has no templates, gets no submission.

    Args:
        seed: Seed of the order. Each task and sample has an order of its own.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def submit(self, episode: Episode) -> str | None:
        """The next variant in the order."""
        order = self.order(episode)
        return order[len(episode.turns)].source if len(episode.turns) < len(order) else None

    def order(self, episode: Episode) -> list[Variant]:
        """All variants in the order of submission."""
        task = episode.task
        drawn = list(variants(task.problem)) if task.written_in == "triton" else []
        again = f"/{episode.sample}" if episode.sample > 1 else ""
        random.Random(f"{self.seed}/{task.id}{again}").shuffle(drawn)
        return drawn
