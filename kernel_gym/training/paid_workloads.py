"""Which workloads GRPO pays for: the arms of the ablation of unseen shapes.

The default pays for unseen workloads that each step draws again. `once` draws them once in a run.
`unpaid` pays for the train workloads alone, as the policy sees them in its prompt.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Literal

from kernel_gym.records import Evaluation, Outcome, Stage
from kernel_gym.rewards import Context, Reward, RewardResult
from kernel_gym.rewards.reward import NOTHING_KNOWN
from kernel_gym.tasks import get_task
from kernel_gym.tasks.workload import Split
from kernel_gym.training.scoring import Scorer

TRAIN_DRAW = "train"
_HIDDEN = (Stage.ADVERSARIAL, Stage.UNSEEN)
_NOT_PAID = (Outcome.HACK, Outcome.SCREENED, Outcome.INFRA)


def paying(
    scorer: Scorer, unseen: Literal["each_step", "once", "unpaid"], tasks: Sequence[str]
) -> Scorer:
    """Returns a scorer for GRPO with the same executor and ledger.

    Args:
        scorer: The scorer of the run, which stays as it is.
        unseen: The configuration's `gym.unseen`.
        tasks: The tasks trained on. With `unpaid` their start kernels are evaluated.

    Raises:
        ValueError: With `unpaid`, a task has no start kernel with times.
    """
    paid = copy.copy(scorer)
    if unseen == "once":
        paid.one_draw = TRAIN_DRAW
    if unseen == "unpaid":
        starts = [(task, get_task(task).start_source or "") for task in tasks]
        known = scorer(starts, draw=TRAIN_DRAW)
        seconds = {s.task: _seconds(s.evaluation, "baseline_seconds") for s in known}
        if missing := [task for task, times in seconds.items() if not times]:
            raise ValueError(f"gym.unseen = 'unpaid': no baseline of {missing[0]!r} is known")
        paid.reward = ShownWorkloads(scorer.reward, seconds)
    return paid


class ShownWorkloads(Reward):
    """Another reward, as if a submission had been evaluated on the train workloads alone.

    A submission that is right on them counts as right, whatever it does on others, and its speed on
    them counts as its speed on unseen ones. A hack remains one.

    Args:
        reward: The other reward.
        baselines: The baseline's seconds on the train workloads, by task, in the order of records.
    """

    def __init__(self, reward: Reward, baselines: Mapping[str, Sequence[float]]) -> None:
        self.reward, self.baselines = reward, baselines

    def __call__(self, evaluation: Evaluation, context: Context = NOTHING_KNOWN) -> RewardResult:
        """Scores a record."""
        return self.reward(self.shown(evaluation), context)

    def shown(self, evaluation: Evaluation) -> Evaluation:
        """Returns the record that the train workloads alone would have given."""
        late = evaluation.stage in _HIDDEN and evaluation.outcome not in _NOT_PAID
        if evaluation.outcome is not Outcome.PASSED and not late:
            return evaluation
        seconds = _seconds(evaluation, "candidate_seconds")
        pairs = zip(self.baselines[evaluation.task], seconds, strict=True)
        speedup = math.exp(sum(math.log(base / own) for base, own in pairs) / len(seconds))
        names = ("speedup", "speedup_low", "unseen_speedup", "unseen_speedup_low")
        return evaluation.model_copy(
            update={
                **dict.fromkeys(names, speedup),
                "outcome": Outcome.PASSED,
                "stage": Stage.DONE,
                "message": "",
                "retention": 1.0,
                "workloads": evaluation.by_split(Split.TRAIN),
            }
        )


def _seconds(evaluation: Evaluation | None, name: str) -> tuple[float, ...]:
    """Returns times on the train workloads; none if one is missing."""
    results = evaluation.by_split(Split.TRAIN) if evaluation else ()
    times = tuple(getattr(result, name) for result in results)
    return times if all(times) else ()
