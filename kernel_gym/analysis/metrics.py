"""The metrics of a recorded run, as the field defines them.

`docs/metrics.md` gives each formula with its source. An attempt is one episode: one sample of one
task. A task has the weight of its attempts; intervals are bootstraps over tasks. Only finished
attempts count. Submissions on which the machine failed (`infra`) are left out, and so are attempts
without any other submission. An attempt that ended without a submission is a failure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypedDict

import numpy as np

from kernel_gym.analysis.estimators import Estimate, Floats, best_at_k, pass_at_k, ratio
from kernel_gym.episodes.history import best_turn
from kernel_gym.formatting import roofline_share
from kernel_gym.judge.protocol import RATIO_CLAMP
from kernel_gym.records import Outcome
from kernel_gym.rewards import get_reward
from kernel_gym.rewards.correctness import ran
from kernel_gym.storage.run_records import TurnRecord
from kernel_gym.storage.run_store import RunStore
from kernel_gym.tasks.workload import Split

THRESHOLDS = (0.0, 0.5, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0)
"""The values of p in the `fast_p` curve; a speedup is at most 10 (rule 24)."""


@dataclass(frozen=True)
class EpisodeAttempt:
    """One episode, without the submissions on which the machine failed."""

    task: str
    sample: int
    turns: tuple[TurnRecord, ...]

    @cached_property
    def best(self) -> TurnRecord | None:
        """The best submission, see :func:`kernel_gym.episodes.history.best_turn`."""
        return best_turn(self.turns)

    @property
    def called(self) -> float:
        """1 if the first call of at least one submission returned, else 0."""
        return float(any(ran(turn.evaluation) for turn in self.turns))

    @property
    def correct(self) -> float:
        """1 if at least one submission passed, else 0."""
        return float(self.best is not None)

    @property
    def speedup(self) -> float:
        """The speedup of the best submission; 0 if none is correct."""
        return (self.best.evaluation.speedup or 0.0) if self.best else 0.0

    @property
    def log_speedup(self) -> float:
        """The logarithm of the speedup; a failure counts as the smallest speedup in use, 0.1."""
        return math.log(max(self.speedup, RATIO_CLAMP[0]))

    @property
    def speed_of_light(self) -> float:
        """Geometric mean over train workloads of roofline time over time, each at most 1; or 0."""
        if self.best is None:
            return 0.0
        shares = [roofline_share(w) for w in self.best.evaluation.by_split(Split.TRAIN)]
        known = [min(share, 1.0) for share in shares if share]
        return math.exp(math.fsum(map(math.log, known)) / len(known)) if known else 0.0

    @property
    def arena(self) -> float:
        """The highest AgentKernelArena score of a submission; 0 without a submission."""
        score = get_reward("agentkernelarena")
        values = [score(turn.evaluation).value for turn in self.turns]
        return max((value for value in values if value is not None), default=0.0)

    @property
    def reward(self) -> float:
        """The highest reward; 0 without a submission."""
        values = [turn.reward for turn in self.turns if turn.reward is not None]
        return max(values, default=0.0)


Measure = tuple[Callable[[EpisodeAttempt], float], Callable[[Floats], Floats]]
MEASURES: dict[str, Measure] = {
    "call_accuracy": (lambda attempt: attempt.called, np.positive),
    "execution_accuracy": (lambda attempt: attempt.correct, np.positive),
    "fast_1": (lambda attempt: float(attempt.speedup > 1.0), np.positive),
    "geometric_speedup_of_all": (lambda attempt: attempt.log_speedup, np.exp),
    "arithmetic_speedup_of_all": (lambda attempt: attempt.speedup, np.positive),
    "speed_of_light": (lambda attempt: attempt.speed_of_light, np.positive),
    "agent_kernel_arena": (lambda attempt: attempt.arena, np.positive),
    "reward": (lambda attempt: attempt.reward, np.positive),
}
"""Means over all attempts: the value to average, and the function to apply to the mean."""


def attempts(store: RunStore) -> list[EpisodeAttempt]:
    """The finished episodes of a run, by task in the run's order and then by sample."""
    played: dict[tuple[str, int], list[TurnRecord]] = {
        (task, sample): []
        for task in store.config.tasks
        for sample in range(1, store.config.samples + 1)
        if store.is_over(task, sample)
    }
    for record in store.records():
        if (record.task, record.sample) in played:
            played[record.task, record.sample].append(record)
    finished = []
    for (task, sample), records in played.items():
        turns = tuple(r for r in records if r.evaluation.outcome is not Outcome.INFRA)
        if turns or not records:
            finished.append(EpisodeAttempt(task, sample, turns))
    return finished


def by_task(attempts: Iterable[EpisodeAttempt]) -> dict[str, list[EpisodeAttempt]]:
    """The attempts of each task."""
    tasks: dict[str, list[EpisodeAttempt]] = {}
    for attempt in attempts:
        tasks.setdefault(attempt.task, []).append(attempt)
    return tasks


def mean_over(
    groups: Sequence[Sequence[EpisodeAttempt]],
    value: Callable[[EpisodeAttempt], float],
    link: Callable[[Floats], Floats] = np.positive,
    counts: Callable[[EpisodeAttempt], bool] = lambda attempt: True,
) -> Estimate:
    """The mean of a value over attempts, with its interval over tasks.

    Args:
        groups: The attempts of each task.
        value: The value of an attempt.
        link: Applied to the mean, such as `numpy.exp` for a geometric mean.
        counts: Whether an attempt counts.
    """
    chosen = [[value(a) for a in group if counts(a)] for group in groups]
    return ratio([math.fsum(values) for values in chosen], [len(v) for v in chosen], link)


def headline(attempts: Sequence[EpisodeAttempt]) -> dict[str, Estimate]:
    """The means over all attempts, and the mean speedups of the correct ones."""
    groups = list(by_task(attempts).values())
    means = {name: mean_over(groups, *measure) for name, measure in MEASURES.items()}

    def right(attempt: EpisodeAttempt) -> bool:
        return attempt.speedup > 0

    means["geometric_speedup_of_correct"] = mean_over(
        groups, lambda a: a.log_speedup, np.exp, right
    )
    means["arithmetic_speedup_of_correct"] = mean_over(groups, lambda a: a.speedup, counts=right)
    return means


def unseen_speedup(attempts: Sequence[EpisodeAttempt]) -> Estimate:
    """The geometric mean of the speedups on unseen workloads, over the correct attempts."""

    def speedup(attempt: EpisodeAttempt) -> float:
        return (attempt.best.evaluation.unseen_speedup or 0.0) if attempt.best else 0.0

    groups = list(by_task(attempts).values())
    return mean_over(groups, lambda a: math.log(speedup(a)), np.exp, lambda a: speedup(a) > 0)


class FastP(TypedDict):
    """The share of attempts above a speedup p."""

    p: float
    share: Estimate


def fast_p(attempts: Sequence[EpisodeAttempt]) -> list[FastP]:
    """The share of attempts that are correct and have a speedup above p, for each p."""
    groups = list(by_task(attempts).values())

    def share(p: float) -> Estimate:
        return mean_over(groups, lambda a: float(a.speedup > p))

    return [{"p": p, "share": share(p)} for p in THRESHOLDS]


def fast_p_compiled(
    attempts: Sequence[EpisodeAttempt], compiled: Mapping[str, float]
) -> dict[str, object]:
    """The `fast_p` curve against `torch.compile`, over the tasks for which it was measured.

    The speedup over eager PyTorch is divided by that of the compiled reference, which was measured
    when the task was imported.

    Args:
        attempts: The attempts.
        compiled: Eager seconds over compiled seconds, by task.

    Returns:
        The number of tasks, the shares, and those against eager PyTorch over the same tasks.
    """
    known = [a for a in attempts if a.task in compiled]
    groups = list(by_task(known).values())

    def share(p: float) -> Estimate:
        return mean_over(groups, lambda a: float(a.speedup / compiled[a.task] > p))

    rows = [
        {"p": row["p"], "share": share(row["p"]), "eager": row["share"]} for row in fast_p(known)
    ]
    return {"tasks": len(groups), "rows": rows}


def at_k(attempts: Sequence[EpisodeAttempt]) -> list[dict[str, object]]:
    """pass@k, and best@k of the speedup (0 for a failure), for k = 1, 2, 4, ... and all samples.

    Each is a mean over the tasks with at least k attempts.
    """
    groups = [[a.speedup for a in group] for group in by_task(attempts).values()]
    right = [sum(a.correct for a in group) for group in by_task(attempts).values()]
    most = max(map(len, groups), default=0)
    powers = [2**i for i in range(most.bit_length()) if 2**i < most]
    rows = []
    for k in [*powers, most] if most else []:
        enough = [(g, int(c)) for g, c in zip(groups, right, strict=True) if len(g) >= k]
        ones = [1.0] * len(enough)
        chances = [pass_at_k(len(group), correct, k) for group, correct in enough]
        bests = [best_at_k(group, k) for group, _ in enough]
        row = {"k": k, "tasks": len(enough)}
        rows.append({**row, "pass": ratio(chances, ones), "best_speedup": ratio(bests, ones)})
    return rows
