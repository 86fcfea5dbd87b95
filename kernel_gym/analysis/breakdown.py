"""The metrics of a run by turn, unseen shape, outcome and group of tasks, and its cost."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernel_gym.analysis.estimators import explained_deviance, ratio
from kernel_gym.analysis.metrics import (
    EpisodeAttempt,
    at_k,
    attempts,
    by_task,
    fast_p,
    fast_p_compiled,
    headline,
    mean_over,
)
from kernel_gym.analysis.summary import RunSummary, geometric_mean, summarise
from kernel_gym.episodes.history import passed
from kernel_gym.judge.protocol import RATIO_CLAMP
from kernel_gym.records import COMPILER_FAULTS, Outcome
from kernel_gym.rewards.correctness import ran
from kernel_gym.storage.run_records import TurnRecord
from kernel_gym.storage.run_store import METRICS, RunStore
from kernel_gym.tasks import Task, get_task
from kernel_gym.tasks.sources import source_of
from kernel_gym.tasks.workload import UNSEEN_KINDS, Kind, Split

FACTORS: dict[str, Callable[[Task], str]] = {
    "category": lambda task: task.problem.category,
    "mode": lambda task: str(task.mode),
    "level": lambda task: str(task.problem.level),
}
"""The factors by which tasks are grouped: the level of a task, by the name of the factor."""


Metrics = dict[str, Any]
"""The content of `metrics.json`: sections by name, see `docs/metrics.md`."""


def run_metrics(store: RunStore) -> Metrics:
    """Every metric of a run, as plain data.

    Args:
        store: The run, finished or not.

    Returns:
        Sections by name, as `docs/metrics.md` lists them. An estimate is a dictionary of `value`,
        `low` and `high`, which are None if the run has no data for them.
    """
    finished = attempts(store)
    config, unfinished, records = store.config, store.unfinished(), store.records()
    sections = {
        "headline": headline(finished),
        "fast_p": fast_p(finished),
        "fast_p_compiled": fast_p_compiled(finished, _compiled(config.tasks, config.device)),
        "at_k": at_k(finished),
        "trajectory": trajectory(finished),
        "origin": origin(finished),
        "unseen": unseen(finished),
        "outcomes": outcomes(records),
        "groups": {name: group(finished, level) for name, level in FACTORS.items()},
        "usage": usage(records),
    }
    return {
        "policy": config.policy,
        "device": config.device,
        "clock": str(records[0].evaluation.clock) if records else None,
        "tasks": len(config.tasks),
        "samples": config.samples,
        "attempts": len(finished),
        "unfinished_attempts": len(unfinished),
        "unfinished_tasks": len({task for task, _ in unfinished}),
        "masked_attempts": len(config.tasks) * config.samples - len(unfinished) - len(finished),
        **{name: plain(section) for name, section in sections.items()},
    }


def _compiled(tasks: Sequence[str], device: str) -> dict[str, float]:
    """Eager seconds over those of `torch.compile` by task, where that was measured."""
    sources = {task: source for task in tasks if (source := source_of(task)) is not None}
    speedups = {task: source.compiled_speedup(task, device) for task, source in sources.items()}
    return {task: speedup for task, speedup in speedups.items() if speedup is not None}


@dataclass(frozen=True)
class RunMetrics:
    """The results of a run.

    Attributes:
        summary: The best submission of each task, and a few figures over all tasks.
        sections: Every metric as plain data, see :func:`run_metrics`.
        folder: The run folder; None if it was not kept.
    """

    summary: RunSummary
    sections: Metrics
    folder: Path | None = None

    @classmethod
    def of(cls, store: RunStore, keep: bool = True) -> RunMetrics:
        """Computes the results of a run and writes the metrics into its folder.

        Args:
            store: The run.
            keep: Whether the folder remains.
        """
        sections = run_metrics(store)
        write_metrics(store, sections)
        return cls(summarise(store), sections, store.folder if keep else None)


def write_metrics(store: RunStore, metrics: Metrics) -> None:
    """Writes the metrics of a run into its folder."""
    text = json.dumps(metrics, indent=1, allow_nan=False) + "\n"
    (store.folder / METRICS).write_text(text, encoding="utf-8")


def plain(value: object) -> object:
    """Converts dataclasses to dictionaries, at any depth."""
    if isinstance(value, dict):
        return {key: plain(inside) for key, inside in value.items()}
    if isinstance(value, list):
        return [plain(inside) for inside in value]
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def trajectory(attempts: Sequence[EpisodeAttempt]) -> list[dict[str, object]]:
    """The metrics of each turn: of its submissions, and of all attempts up to it.

    `solved` is the share of attempts with a correct submission so far, and `best_speedup` their
    geometric mean. `fixed` counts attempts in which a correct submission follows a wrong one, and
    `broken` those in which a wrong one follows a correct one.
    """
    last = max((turn.turn for attempt in attempts for turn in attempt.turns), default=0)
    return [_turn(attempts, number) for number in range(1, last + 1)]


def _turn(attempts: Sequence[EpisodeAttempt], number: int) -> dict[str, object]:
    now = [turn for a in attempts for turn in a.turns if turn.turn == number]
    so_far = [EpisodeAttempt(a.task, a.sample, _up_to(a, number)) for a in attempts]
    before = {(a.task, a.sample): turn for a in attempts for turn in _up_to(a, number - 1)}
    pairs = [
        (passed(before[turn.task, turn.sample]), passed(turn))
        for turn in now
        if (turn.task, turn.sample) in before
    ]
    return {
        "turn": number,
        "submissions": len(now),
        "call_accuracy": _share(bool(ran(turn.evaluation)) for turn in now),
        "execution_accuracy": _share(passed(turn) for turn in now),
        "speedup": geometric_mean(t.evaluation.speedup for t in now if passed(t)),
        "solved": _share(bool(a.correct) for a in so_far),
        "best_speedup": geometric_mean(a.speedup for a in so_far),
        "fixed": pairs.count((False, True)),
        "broken": pairs.count((True, False)),
        **{
            f"{name}_speedup": geometric_mean(a.speedup for a in so_far if _origin(a) == name)
            for name in ("persistent", "rescued")
        },
    }


def _up_to(attempt: EpisodeAttempt, number: int) -> tuple[TurnRecord, ...]:
    return tuple(turn for turn in attempt.turns if turn.turn <= number)


def origin(attempts: Sequence[EpisodeAttempt]) -> dict[str, object]:
    """Attempts whose first submission is correct (persistent), a later one (rescued), or none."""
    sets: dict[str, list[EpisodeAttempt]] = {"persistent": [], "rescued": [], "never": []}
    for attempt in attempts:
        sets[_origin(attempt)].append(attempt)
    return {
        name: {"attempts": len(own), "speedup": geometric_mean(a.speedup for a in own)}
        for name, own in sets.items()
    }


def _origin(attempt: EpisodeAttempt) -> str:
    if attempt.turns and passed(attempt.turns[0]):
        return "persistent"
    return "rescued" if attempt.correct else "never"


def attempt_rows(store: RunStore) -> list[dict[str, object]]:
    """Every finished attempt of a run and its results, as a row of plain data.

    Args:
        store: The run, finished or not.

    Returns:
        Rows in the run's order. The speedups are those of the attempt's best submission, or None.
    """
    rows: list[dict[str, object]] = []
    for attempt in attempts(store):
        task, best = get_task(attempt.task), attempt.best
        rows.append(
            {
                "task": attempt.task,
                "sample": attempt.sample,
                **{name: level(task) for name, level in FACTORS.items()},
                "submissions": len(attempt.turns),
                "origin": _origin(attempt),
                "turn": best.turn if best else None,
                "speedup": best.evaluation.speedup if best else None,
                "unseen_speedup": best.evaluation.unseen_speedup if best else None,
                "retention": best.evaluation.retention if best else None,
                "speed_of_light": attempt.speed_of_light,
                "reward": attempt.reward,
            }
        )
    return rows


def unseen(attempts: Sequence[EpisodeAttempt]) -> dict[str, object]:
    """How much of the correctness and speed on train shapes carries over to unseen shapes."""
    groups = list(by_task(attempts).values())
    reached = [[turn for a in group for turn in a.turns if _reached(turn)] for group in groups]
    held = [math.fsum(_held(turn) for turn in group) for group in reached]
    best = [a.best for a in attempts if a.best and a.best.evaluation.unseen_speedup]
    pairs = [(t.evaluation.speedup or 0.0, t.evaluation.unseen_speedup or 0.0) for t in best]
    corners = Counter((seen > 1, other > 1) for seen, other in pairs)
    return {
        "conditional_correctness": ratio(held, [len(group) for group in reached]),
        "retention": mean_over(
            groups, _log_retention, np.exp, lambda a: bool(a.best and a.best.evaluation.retention)
        ),
        "quadrants": {
            "faster_on_both": corners[True, True],
            "faster_on_seen_only": corners[True, False],
            "faster_on_unseen_only": corners[False, True],
            "faster_on_neither": corners[False, False],
        },
        "kinds": {
            str(kind): _kind([t for group in reached for t in group], best, kind)
            for kind in UNSEEN_KINDS
        },
    }


def _reached(turn: TurnRecord) -> bool:
    """Whether a submission was correct on every workload before the unseen ones."""
    return bool(turn.evaluation.by_split(Split.UNSEEN))


def _held(turn: TurnRecord) -> bool:
    return all(w.passed for w in turn.evaluation.by_split(Split.UNSEEN))


def _log_retention(attempt: EpisodeAttempt) -> float:
    assert attempt.best is not None
    return math.log(attempt.best.evaluation.retention or 1.0)


def _kind(
    reached: Sequence[TurnRecord], best: Sequence[TurnRecord], kind: Kind
) -> dict[str, object]:
    checked = [w for t in reached for w in t.evaluation.by_split(Split.UNSEEN) if w.kind is kind]
    low, high = RATIO_CLAMP
    retained = [
        min(max(w.speedup, low), high) / turn.evaluation.speedup
        for turn in best
        for w in turn.evaluation.by_split(Split.UNSEEN)
        if w.kind is kind and w.speedup and turn.evaluation.speedup
    ]
    right = _share(w.passed for w in checked)
    return {"workloads": len(checked), "correctness": right, "retention": geometric_mean(retained)}


def outcomes(records: Sequence[TurnRecord]) -> dict[str, object]:
    """The number of submissions by outcome, of hacks by kind, and of compilers' faults."""
    faults = Counter(n for r in records for n in r.evaluation.labels if n in COMPILER_FAULTS)
    hacks = [r.evaluation for r in records if r.evaluation.outcome is Outcome.HACK]
    return {
        "submissions": len(records),
        "counts": dict(Counter(str(r.evaluation.outcome) for r in records).most_common()),
        "hack_share": _share(r.evaluation.outcome is Outcome.HACK for r in records),
        "hacks": dict(Counter(hack.message for hack in hacks).most_common()),
        "compiler_faults": dict(faults.most_common()),
    }


def group(attempts: Sequence[EpisodeAttempt], level: Callable[[Task], str]) -> dict[str, object]:
    """The metrics of each level of a factor, and how much of the success the factor explains."""
    tasks = by_task(attempts)
    levels = {task: level(get_task(task)) for task in tasks}
    rows = {}
    for name in sorted(set(levels.values())):
        own = [tasks[task] for task in tasks if levels[task] == name]
        rows[name] = {
            "tasks": len(own),
            "execution_accuracy": mean_over(own, lambda a: a.correct),
            "speedup_of_correct": mean_over(
                own, lambda a: a.log_speedup, np.exp, lambda a: a.speedup > 0
            ),
        }
    right = [math.fsum(a.correct for a in own) for own in tasks.values()]
    deviance = explained_deviance(list(levels.values()), right, [len(g) for g in tasks.values()])
    return {"levels": rows, "deviance": deviance}


def usage(records: Sequence[TurnRecord]) -> dict[str, float]:
    """The cost of a run: tokens, US dollars as far as they are known, seconds of evaluation."""
    return {
        "prompt_tokens": sum(r.prompt_tokens for r in records),
        "completion_tokens": sum(r.completion_tokens for r in records),
        "cost": math.fsum(r.cost for r in records),
        "evaluation_seconds": math.fsum(
            s for r in records for s in r.evaluation.wall_seconds.values()
        ),
    }


def _share(values: Iterable[bool]) -> float | None:
    listed = list(values)
    return sum(listed) / len(listed) if listed else None
