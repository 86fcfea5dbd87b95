"""Assesses a checkpoint: draws replies for each task, evaluates and averages them."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from kernel_gym.analysis.estimators import Estimate, paired
from kernel_gym.episodes.chat import converse
from kernel_gym.episodes.episode import Episode, Prompt
from kernel_gym.policies import Policy, Reply
from kernel_gym.tasks import get_task
from kernel_gym.training.corpus import CorpusRow, write_corpus
from kernel_gym.training.journal import gym_metrics
from kernel_gym.training.scoring import Scored, Scorer

ASSESSMENT, REPLIES = "evaluation.json", "replies.jsonl"


@dataclass(frozen=True)
class Assessment:
    """Mean rewards of a checkpoint.

    Attributes:
        train: Mean reward over the tasks trained on.
        held_out: Mean reward over the held-out tasks.
        tasks: Metrics of each task, and the rewards of its replies.
        samples: Number of replies per task.
        device: The device that evaluated them.
        step: The step of GRPO; 0 before the first one.
    """

    train: float
    held_out: float
    tasks: Mapping[str, Mapping[str, object]]
    samples: int
    device: str
    step: int

    def write(self, folder: Path) -> None:
        """Writes the assessment into a checkpoint."""
        path = folder / ASSESSMENT
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Assessment:
        """Reads the assessment in a checkpoint."""
        return cls(**json.loads((folder / ASSESSMENT).read_text(encoding="utf-8")))

    def metrics(self) -> dict[str, float]:
        """The two means, and the mean reward of each task."""
        by_task = {name: float(str(task["gym/reward"])) for name, task in self.tasks.items()}
        return {"train": self.train, "held_out": self.held_out, **by_task}


def assess(
    policy: Policy,
    scorer: Scorer,
    prompt: Prompt,
    train: Sequence[str],
    held_out: Sequence[str],
    samples: int,
    step: int = 0,
    folder: Path | None = None,
) -> Assessment:
    """Assesses a policy.

    Args:
        policy: The policy.
        scorer: Evaluates and scores submissions.
        prompt: Writes the prompts.
        train: Ids of the tasks trained on.
        held_out: Ids of the held-out tasks.
        samples: Number of replies per task.
        step: The step of GRPO, for the record.
        folder: The folder for the replies and their evaluations, if they are to be kept.

    Returns:
        The mean rewards. Tasks have equal weight; masked replies are left out.
    """
    ids = [task for task in (*train, *held_out) for _ in range(samples)]
    replies = policy.reply([converse(Episode(get_task(task)), prompt) for task in ids])
    batch = [
        (task, reply.source if isinstance(reply, Reply) else "")
        for task, reply in zip(ids, replies, strict=True)
    ]
    scored = scorer(batch, draw="assess")  # the same draw at every checkpoint makes them comparable
    if folder is not None:
        texts = [reply.text if isinstance(reply, Reply) else "" for reply in replies]
        write_corpus(folder / REPLIES, map(reply_row, texts, scored))
    tasks: dict[str, dict[str, object]] = {}
    for i, task in enumerate((*train, *held_out)):
        own = scored[i * samples : (i + 1) * samples]
        rewards = [s.reward for s in own]
        tasks[task] = {**gym_metrics(own), "rewards": rewards}
    means = {name: float(str(task["gym/reward"])) for name, task in tasks.items()}

    def mean(names: Sequence[str]) -> float:
        return statistics.fmean(means[name] for name in names) if names else 0.0

    return Assessment(mean(train), mean(held_out), tasks, samples, scorer.executor.device, step)


def reply_row(text: str, scored: Scored) -> CorpusRow:
    """Returns a reply and its evaluation as a row."""
    row = CorpusRow(task=scored.task, source=scored.source, reply=text, reward=scored.reward)
    if (evaluation := scored.evaluation) is None:
        return row
    known = ("outcome", "stage", "clock", "speedup", "unseen_speedup")
    return row.model_copy(update={name: getattr(evaluation, name) for name in known})


def rise(before: Assessment, after: Assessment, tasks: Sequence[str]) -> Estimate:
    """The rise of the mean reward between two checkpoints.

    Args:
        before: The assessment of the earlier checkpoint.
        after: The assessment of the later checkpoint.
        tasks: The assessed tasks that count, with equal weights.

    Returns:
        The rise with the interval of a paired bootstrap over tasks, as in `kernel-gym compare`.
        Pairing removes the differences in difficulty between tasks.
    """
    first, last = before.metrics(), after.metrics()
    return paired([first[task] for task in tasks], [last[task] for task in tasks])
