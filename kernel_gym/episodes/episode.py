"""An episode as a policy sees it: the task and the turns so far."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernel_gym.records import Evaluation
from kernel_gym.rewards import RewardResult
from kernel_gym.tasks import Task


@dataclass(frozen=True)
class Turn:
    """One submission and what came of it. `text` is the reply it was in, where that is known."""

    source: str
    evaluation: Evaluation
    reward: RewardResult
    feedback: str
    text: str = ""


@dataclass(frozen=True)
class Episode:
    """Up to `max_turns` submissions on one task; `sample`, from 1, tells its episodes apart.

    Edits apply at first to `start`, or to the task's start kernel where it is empty.
    """

    task: Task
    turns: tuple[Turn, ...] = ()
    sample: int = 1
    start: str = ""

    def after(self, turn: Turn) -> Episode:
        """The episode with one more turn."""
        return replace(self, turns=(*self.turns, turn))
