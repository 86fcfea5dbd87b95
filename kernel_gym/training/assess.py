"""What a checkpoint is worth: replies drawn for each task, evaluated and averaged."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from kernel_gym.analysis.estimators import Estimate, paired
from kernel_gym.episodes.conversation import Prompt, converse
from kernel_gym.episodes.episode import Episode
from kernel_gym.policies import Policy, Reply
from kernel_gym.tasks import get_task
from kernel_gym.training.journal import gym_metrics
from kernel_gym.training.scoring import Scorer

ASSESSMENT = "evaluation.json"


@dataclass(frozen=True)
class Assessment:
    """The mean over replies, by task and over tasks.

    Attributes:
        train: Mean reward over the tasks trained on.
        held_out: Mean reward over the others.
        tasks: Metrics of each task, and the rewards of its replies.
        samples: Replies a task.
        device: What evaluated them.
        step: Of GRPO; 0 for its start.
    """

    train: float
    held_out: float
    tasks: Mapping[str, Mapping[str, object]]
    samples: int
    device: str
    step: int

    def write(self, folder: Path) -> None:
        """Puts it beside a checkpoint."""
        path = folder / ASSESSMENT
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Assessment:
        """The assessment beside a checkpoint."""
        return cls(**json.loads((folder / ASSESSMENT).read_text(encoding="utf-8")))

    def metrics(self) -> dict[str, float]:
        """The two means and those of each task."""
        by_task = {name: float(str(found["gym/reward"])) for name, found in self.tasks.items()}
        return {"train": self.train, "held_out": self.held_out, **by_task}


def assess(
    policy: Policy,
    scorer: Scorer,
    prompt: Prompt,
    train: Sequence[str],
    held_out: Sequence[str],
    samples: int,
    step: int = 0,
) -> Assessment:
    """Measures a policy.

    Args:
        policy: What replies.
        scorer: What evaluates and scores.
        prompt: How tasks are put.
        train: Ids of the tasks trained on.
        held_out: Ids of the others.
        samples: Replies a task.
        step: Noted in the result.

    Returns:
        The means. Tasks count equally; masked replies do not count.
    """
    ids = [task for task in (*train, *held_out) for _ in range(samples)]
    replies = policy.reply([converse(Episode(get_task(task)), prompt) for task in ids])
    batch = [
        (task, reply.source if isinstance(reply, Reply) else "")
        for task, reply in zip(ids, replies, strict=True)
    ]
    scored = scorer(batch, draw="assess")  # the same at every checkpoint: they are compared
    tasks: dict[str, dict[str, object]] = {}
    for i, task in enumerate((*train, *held_out)):
        own = scored[i * samples : (i + 1) * samples]
        rewards = [s.reward for s in own]
        tasks[task] = {**gym_metrics(own), "rewards": rewards}
    means = {name: float(str(found["gym/reward"])) for name, found in tasks.items()}

    def mean(names: Sequence[str]) -> float:
        return statistics.fmean(means[name] for name in names) if names else 0.0

    return Assessment(mean(train), mean(held_out), tasks, samples, scorer.executor.device, step)


def rise(before: Assessment, after: Assessment, tasks: Sequence[str]) -> Estimate:
    """By how much the mean reward rose over tasks.

    Args:
        before: Of the earlier checkpoint.
        after: Of the later one.
        tasks: Which of the assessed tasks count, each equally.

    Returns:
        The rise with the interval of a paired bootstrap over the tasks, as `kernel-gym compare`
        gives it: what makes a task hard cancels.
    """
    first, last = before.metrics(), after.metrics()
    return paired([first[task] for task in tasks], [last[task] for task in tasks])
